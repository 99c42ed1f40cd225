// What the C++ runtime keeps per thread about exceptions in flight. Fibres share one thread and may switch within a
// catch block, so a scheduler of fibres exchanges it at each switch.
#pragma once

#include <cxxabi.h>

#include <utility>

namespace dbx::fibres {

struct ExceptionState {
  void* caught = nullptr;
  unsigned int uncaught = 0;
};

// With that of the running fibre.
inline void Exchange(ExceptionState& mine) {
  auto* current = reinterpret_cast<ExceptionState*>(abi::__cxa_get_globals());
  std::swap(current->caught, mine.caught);
  std::swap(current->uncaught, mine.uncaught);
}

}  // namespace dbx::fibres
