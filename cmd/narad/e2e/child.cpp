#include "cmd/narad/e2e/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace narad::e2e {
namespace {

int left_ms(Clock::time_point until) {
  const auto left = std::chrono::duration_cast<Duration>(until - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

Child::Child(std::vector<std::string> argv, ChildOptions options) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0)
    throw std::runtime_error("pipe");
  std::map<std::string, std::string> env{{"PATH", "/usr/sbin:/usr/bin:/sbin:/bin"},
                                         {"HOME", "/nonexistent"}};
  for (auto& [name, value] : options.env) env[name] = value;
  std::vector<std::string> env_text;
  for (auto& [name, value] : env) env_text.push_back(name + "=" + value);
  std::vector<char*> args, envs;
  for (auto& a : argv) args.push_back(a.data());
  for (auto& e : env_text) envs.push_back(e.data());
  args.push_back(nullptr);
  envs.push_back(nullptr);

  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork");
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // never outlives the test
    sigset_t none;                       // whatever the forking thread blocks
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    const int null = ::open("/dev/null", O_RDONLY);
    ::dup2(null, 0);
    if (!options.cwd.empty() && ::chdir(options.cwd.c_str()) != 0) ::_exit(126);
    if (options.run_as != 0 && (::setgid(options.run_as) != 0 || ::setuid(options.run_as) != 0)) {
      ::_exit(126);
    }
    ::execvpe(args[0], args.data(), envs.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
  ::fcntl(out_fd_, F_SETFL, O_NONBLOCK);
  ::fcntl(err_fd_, F_SETFL, O_NONBLOCK);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Child::~Child() {
  if (!exit_) kill9();
  close_fd(out_fd_);
  close_fd(err_fd_);
  close_fd(pidfd_);
}

// Waits up to `wait_ms` for bytes and takes them. False at the end of the stream.
bool Child::read_some(int fd, std::string& into, int wait_ms) {
  if (fd < 0) return false;
  pollfd p{fd, POLLIN, 0};
  if (::poll(&p, 1, wait_ms) <= 0) return true;
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n > 0) into.append(buffer, static_cast<std::size_t>(n));
  return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

std::optional<std::string> Child::line(Duration limit) {
  const auto until = Clock::now() + limit;
  for (;;) {
    const std::size_t end = out_.find('\n', line_at_);
    if (end != std::string::npos) {
      std::string text = out_.substr(line_at_, end - line_at_);
      line_at_ = end + 1;
      return text;
    }
    const int ms = left_ms(until);
    if (ms == 0) return std::nullopt;
    read_some(err_fd_, err_, 0);  // so that the child never blocks on a full pipe
    if (!read_some(out_fd_, out_, std::min(ms, 200))) return std::nullopt;
  }
}

std::optional<std::string> Child::line_with(const std::string& text, Duration limit) {
  const auto until = Clock::now() + limit;
  for (;;) {
    auto next = line(Duration(left_ms(until)));
    if (!next || next->find(text) != std::string::npos) return next;
  }
}

void Child::signal(int number) {
  if (!exit_) ::kill(pid_, number);
}

std::optional<Exit> Child::wait(Duration limit) {
  const auto until = Clock::now() + limit;
  while (!exit_) {
    pollfd fds[3] = {{pidfd_, POLLIN, 0}, {out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}};
    const int ms = left_ms(until);
    if (::poll(fds, 3, ms) == 0 && ms == 0) return std::nullopt;
    if (fds[1].revents != 0 && !read_some(out_fd_, out_, 0)) close_fd(out_fd_);
    if (fds[2].revents != 0 && !read_some(err_fd_, err_, 0)) close_fd(err_fd_);
    if (fds[0].revents == 0) continue;
    int status = 0;
    if (::waitpid(pid_, &status, 0) != pid_) throw std::runtime_error("waitpid");
    Exit e;
    if (WIFEXITED(status)) e.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) e.signal = WTERMSIG(status);
    exit_ = e;
  }
  return exit_;
}

void Child::kill9() {
  signal(SIGKILL);
  wait(std::chrono::seconds(30));
}

bool Child::running() { return !wait(Duration(0)); }

std::string Child::out() {
  while (out_fd_ >= 0) {
    const std::size_t before = out_.size();
    if (!read_some(out_fd_, out_, 0)) close_fd(out_fd_);
    if (out_.size() == before) break;
  }
  return out_;
}

std::string Child::err() {
  while (err_fd_ >= 0) {
    const std::size_t before = err_.size();
    if (!read_some(err_fd_, err_, 0)) close_fd(err_fd_);
    if (err_.size() == before) break;
  }
  return err_;
}

Ran run(std::vector<std::string> argv, ChildOptions options, Duration limit) {
  Child child(std::move(argv), std::move(options));
  if (!child.wait(limit)) child.kill9();
  Ran ran;
  ran.exit = child.wait(Duration(0)).value_or(Exit{});
  ran.out = child.out();
  ran.err = child.err();
  return ran;
}

std::string build_directory() {
  const char* dir = std::getenv("NARAD_BUILD_DIR");
  if (dir == nullptr) throw std::runtime_error("NARAD_BUILD_DIR is not set: run through ctest");
  return dir;
}

std::string narad_binary() { return build_directory() + "/cmd/narad/narad"; }

TempDir::TempDir() {
  std::string pattern = std::filesystem::temp_directory_path() / "narad-e2e-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
  path_ = pattern;
}

TempDir::~TempDir() {
  std::error_code ec;
  std::filesystem::remove_all(path_, ec);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
}

}  // namespace narad::e2e
