#include "pkg/env/real/thread.h"

#include <pthread.h>
#include <signal.h>

namespace narad {

void prepare_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
  sigset_t all;
  ::sigfillset(&all);
  // Faults of this very thread must still end the process as they should.
  for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace narad
