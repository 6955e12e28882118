#include "wan/sites/site_mesh.hpp"
#include <cstring>
#include <map>
namespace maki::sites {
struct SiteMesh::Parts { Sites& sites; std::uint64_t number=0, taken=0; std::map<int,Message> own; };
SiteMesh::SiteMesh(Sites& s):parts_(new Parts{s,0,0,{}}){}
SiteMesh::~SiteMesh()=default;
void SiteMesh::set_slabs(const Slabs&,double){}
void SiteMesh::give(const CellBox& box,int,const MassUnit&,const std::uint64_t* c){ std::size_t n=box.size(); Message m(sizeof box+8*n); std::memcpy(m.data(),&box,sizeof box); std::memcpy(m.data()+sizeof box,c,8*n); parts_->sites.publish_parts(Phase::kMesh,parts_->number++,m);}
void SiteMesh::take(const CellBox& box,int,const MassUnit&,std::uint64_t* c){ for(int s=0;s<parts_->sites.count();++s){ if(s==parts_->sites.me())continue; for(auto&m:parts_->sites.receive_parts(s,Phase::kMesh,parts_->taken)){ CellBox b; std::memcpy(&b,m.data(),sizeof b); auto*v=reinterpret_cast<const std::uint64_t*>(m.data()+sizeof b); std::size_t i=0; for(int x=0;x<b.extent[0];++x)for(int y=0;y<b.extent[1];++y)for(int z=0;z<b.extent[2];++z,++i){ int X=b.origin[0]+x-box.origin[0],Y=b.origin[1]+y-box.origin[1],Z=b.origin[2]+z-box.origin[2]; if(X<0||Y<0||Z<0||X>=box.extent[0]||Y>=box.extent[1]||Z>=box.extent[2])continue; c[((std::size_t)X*box.extent[1]+Y)*box.extent[2]+Z]+=v[i]; } } } parts_->taken++; }
}
