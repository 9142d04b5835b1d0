#pragma once
// What every thread of ours does first.
#include <string>

namespace narad {

// Names the calling thread (15 bytes are shown) and blocks all signals in it: signals are the
// loop's business, and system calls of jobs must not be interrupted.
void prepare_thread(const std::string& name);

}  // namespace narad
