#include "capture/statistics.h"

namespace backbind {

std::mutex& Statistics::mutex() {
  static std::mutex one;
  return one;
}

void Statistics::update(const std::function<void(Counts&)>& change) {
  const std::lock_guard lock(mutex());
  change(counts_);
}

Counts Statistics::read() const {
  const std::lock_guard lock(mutex());
  return counts_;
}

void Statistics::clear() {
  const std::lock_guard lock(mutex());
  counts_ = Counts();
}

Statistics& process_statistics() {
  static Statistics statistics;
  return statistics;
}

}  // namespace backbind
