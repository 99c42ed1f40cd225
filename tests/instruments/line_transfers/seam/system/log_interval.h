// The product's class, which is told of the begin and the end of the measured interval, tells the instrument.
#pragma once

#define LogInterval MeasuredLogInterval
#include_next "system/log_interval.h"
#undef LogInterval

#include "tests/instruments/line_transfers/instrument.h"

namespace dbx {

class LogInterval : public MeasuredLogInterval {
 public:
  using MeasuredLogInterval::MeasuredLogInterval;
  void Begin() {
    MeasuredLogInterval::Begin();
    lines::BeginInterval();
  }
  void End() {
    lines::EndInterval();
    MeasuredLogInterval::End();
  }
};

}  // namespace dbx
