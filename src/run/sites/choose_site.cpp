#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/error.hpp"
#include "src/config/site_tables.hpp"
#include "src/run/sites/open_sites.hpp"

namespace maki {

ThisSite choose_site(Config& config, const std::string& name) {
  const auto& ring = config.sites.ring;
  if (ring.empty()) {
    if (name.empty()) return {};
    throw Error(fmt::format("there is no site '{}'", name), "the configuration has no [sites]",
                "leave --site out, or give sites.ring");
  }
  if (name.empty() && ring.size() > 1) {
    throw Error("which of the sites is this one?", fmt::format("sites.ring has {}", fmt::join(ring, ", ")),
                "give --site NAME");
  }
  ThisSite site{name.empty() ? ring.front() : name, 0, static_cast<int>(ring.size())};
  site.place = place_in_ring(config, site.name);
  if (site.over_sites() && config.gravity.method == Method::kDirect) {
    throw Error("direct sums are not for several sites", "every pair would have to meet: gravity.method is direct",
                "choose gravity.method = \"tree\", or run it at one site: leave sites.ring out");
  }
  if (site.over_sites() && !config.run.output_directory)
    config.run.output_directory = fmt::format("output/{}/{}", config.run.name, site.name);
  return site;
}

void at_all_sites(sites::Sites& sites, const std::function<void()>& call) {
  std::string problem;
  std::exception_ptr thrown;
  try {
    call();
  } catch (const sites::SiteLost&) {
    throw;  // every site has heard of it
  } catch (const std::exception& error) {
    problem = error.what();
    thrown = std::current_exception();
  }
  const std::uint64_t number = sites.next_number(sites::Phase::kControl);
  const std::vector<sites::Message> all =
      sites.gather(sites::Phase::kControl, number, std::as_bytes(std::span(problem)));
  if (thrown) std::rethrow_exception(thrown);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty()) continue;
    const std::string said(reinterpret_cast<const char*>(all[i].data()), all[i].size());
    throw Error(fmt::format("site {} cannot go on", sites.name(static_cast<int>(i))), said);
  }
}

}  // namespace maki
