#include "hooks/final_callbacks.h"

#include <ATen/ThreadLocalState.h>

#include <mutex>

namespace backbind {

void call_final_callbacks(torch::autograd::GraphTask& task) {
  std::unique_lock lock(task.final_callbacks_lock_);
  if (task.final_callbacks_.empty()) return;
  const at::ThreadLocalStateGuard state(task.thread_locals_);
  // By index, because a callback may queue another.
  for (size_t i = 0; i < task.final_callbacks_.size(); ++i) {
    const auto callback = task.final_callbacks_[i];
    lock.unlock();
    callback();
    lock.lock();
  }
}

}  // namespace backbind
