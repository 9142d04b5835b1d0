#pragma once
// Leaving the process, and the signals that ask for it.
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "pkg/env/parking.h"
#include "pkg/env/process.h"
#include "pkg/env/real/log_writer.h"

namespace narad {

class RealProcess final : public Process {
 public:
  explicit RealProcess(LogWriter& log) : log_(log) {}
  // Gives the log half a second, then _exit.
  void exit(int code, std::string_view why) override;
  std::string describe() const override;

 private:
  LogWriter& log_;
};

class RealSignals final : public Signals {
 public:
  // With `handle` false no signal is taken over, and waits are parked for good.
  RealSignals(asio::io_context& context, Parking& parking, bool handle);
  void wait(SignalHandler handler) override;

 private:
  asio::signal_set signals_;
  Parking& parking_;
  const bool handle_;
};

}  // namespace narad
