#include "tests/testbed/namespaces.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <vector>

#include "wan/net/error.hpp"
#include "wan/net/socket/tcp.hpp"

namespace maki::testbed {
namespace {

namespace fs = std::filesystem;
using wan::Error;

const std::string kFolder = "/run/netns";
const std::string kPrefix = "maki-";

std::string path_of(const std::string& name) { return kFolder + "/" + name; }

std::string own_namespace() { return fmt::format("/proc/self/task/{}/ns/net", static_cast<long>(syscall(SYS_gettid))); }

[[noreturn]] void fail(const std::string& what) {
  throw Error(what, std::strerror(errno), "emulated links need root and Linux namespaces");
}

// In a thread of its own, so that the caller's namespace stays as it is.
template <class Work>
void in_thread(const Work& work) {
  std::async(std::launch::async, work).get();
}

void raise_loopback() {
  const wan::Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  if (!socket.open() || ioctl(socket.descriptor(), SIOCSIFFLAGS, &request) < 0)
    fail("the loopback of a namespace does not come up");
}

// As `ip netns add` does: the folder is a shared mount, so that other mount namespaces see what is added and removed.
void prepare_folder() {
  fs::create_directories(kFolder);
  if (mount("", kFolder.c_str(), "none", MS_SHARED | MS_REC, nullptr) == 0) return;
  if (errno != EINVAL || mount(kFolder.c_str(), kFolder.c_str(), "none", MS_BIND | MS_REC, nullptr) != 0 ||
      mount("", kFolder.c_str(), "none", MS_SHARED | MS_REC, nullptr) != 0)
    fail("cannot prepare " + kFolder);
}

void remove(const std::string& name) {
  umount2(path_of(name).c_str(), MNT_DETACH);
  unlink(path_of(name).c_str());
}

bool is_inside(const fs::path& process, const struct stat& space) {
  struct stat status;
  return stat((process / "ns/net").c_str(), &status) == 0 && status.st_dev == space.st_dev &&
         status.st_ino == space.st_ino;
}

// Processes inside, this one (whose threads may be there) left out.
std::vector<pid_t> processes_in(const std::string& name) {
  std::vector<pid_t> found;
  struct stat space;
  if (stat(path_of(name).c_str(), &space) != 0) return found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const pid_t process = static_cast<pid_t>(std::atol(entry.path().filename().c_str()));
    if (process > 0 && process != getpid() && is_inside(entry.path(), space)) found.push_back(process);
  }
  return found;
}

void end_processes(const std::string& name) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const pid_t p : processes_in(name)) kill(p, signal);
    for (int i = 0; i < 1000 && !processes_in(name).empty(); ++i) usleep(10000);
  }
}

void try_out() {
  if (unshare(CLONE_NEWNET) != 0) fail("no network namespace can be made");
  const wan::Descriptor tun(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  if (!tun.open()) fail("/dev/net/tun does not open");
  ifreq request{};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  if (ioctl(tun.descriptor(), TUNSETIFF, &request) < 0) fail("no TUN device can be made");
}

std::string file_of(const std::string& setting) {
  std::string path = setting;
  std::replace(path.begin(), path.end(), '.', '/');
  return "/proc/sys/" + path;
}

}  // namespace

std::string why_not() {
  static const std::string reason = [] {
    if (geteuid() != 0) return std::string("emulated links need root (for network namespaces and TUN devices)");
    try {
      in_thread(try_out);
      return std::string();
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
  }();
  return reason;
}

std::string namespace_name(const std::string& what) { return fmt::format("{}{}-{}", kPrefix, getpid(), what); }

Namespace::Namespace(const std::string& name) : name_(name) {
  prepare_folder();
  if (!wan::Descriptor(open(path_of(name).c_str(), O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0)).open())
    fail("cannot make the namespace " + name);
  try {
    in_thread([&] {
      if (unshare(CLONE_NEWNET) != 0) fail("cannot make the namespace " + name);
      if (mount(own_namespace().c_str(), path_of(name).c_str(), "none", MS_BIND, nullptr) != 0)
        fail("cannot name the namespace " + name);
      raise_loopback();
    });
  } catch (...) {
    remove(name);
    throw;
  }
}

Namespace::~Namespace() {
  end_processes(name_);
  remove(name_);
}

void enter_namespace(const std::string& name) {
  const wan::Descriptor space(open(path_of(name).c_str(), O_RDONLY | O_CLOEXEC));
  if (!space.open()) fail("there is no namespace " + name);
  if (setns(space.descriptor(), CLONE_NEWNET) != 0) fail("cannot enter the namespace " + name);
}

void Namespace::set(const std::string& setting, const std::string& value) const {
  const InsideNamespace inside(name_);
  std::ofstream out(file_of(setting));
  out << value << std::flush;
  if (!out)
    throw Error(fmt::format("{} cannot be set to '{}' in {}", setting, value, name_), "the kernel refuses it",
                "a congestion control has to be in net.ipv4.tcp_allowed_congestion_control of the machine to be a "
                "namespace's default; TCP_CONGESTION of a socket takes any");
}

std::string Namespace::get(const std::string& setting) const {
  const InsideNamespace inside(name_);
  std::ifstream in(file_of(setting));
  std::string value;
  if (!std::getline(in, value)) throw Error(fmt::format("{} cannot be read in {}", setting, name_), "there is none");
  return value;
}

InsideNamespace::InsideNamespace(const std::string& name)
    : before_(open(own_namespace().c_str(), O_RDONLY | O_CLOEXEC)) {
  if (before_ < 0) fail("the thread's own namespace does not open");
  enter_namespace(name);
}

InsideNamespace::~InsideNamespace() {
  if (setns(before_, CLONE_NEWNET) != 0) std::terminate();  // anything after would happen in the wrong place
  close(before_);
}

int remove_stale() {
  int removed = 0;
  if (!fs::exists(kFolder)) return 0;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) names.insert(entry.path().filename());
  for (const std::string& name : names) {
    if (!name.starts_with(kPrefix)) continue;
    const long process = std::atol(name.c_str() + kPrefix.size());
    if (process <= 0 || kill(static_cast<pid_t>(process), 0) == 0 || errno != ESRCH) continue;
    end_processes(name);
    remove(name);
    ++removed;
  }
  return removed;
}

}  // namespace maki::testbed
