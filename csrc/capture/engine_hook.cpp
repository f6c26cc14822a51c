#include "capture/engine_hook.h"

#include <pthread.h>
#include <torch/csrc/autograd/engine.h>

#include "capture/captured_backward.h"
#include "capture/choice.h"
#include "capture/direct_entry.h"
#include "capture/listener.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::edge_list;
using torch::autograd::Engine;
using torch::autograd::GraphTask;
using torch::autograd::Node;

variable_list compiled_autograd(const c10::intrusive_ptr<Node>& graph_root, const GraphTask& task, bool accumulate_grad,
                                const edge_list& inputs) {
  // The engine owns the task, and gives it away as const only because its own tracer does not write to it.
  auto& writable = const_cast<GraphTask&>(task);
  if (continue_direct_entry(*graph_root, writable)) return {};
  torch_private::erase_skipped_graph_root(*graph_root, writable);
  const auto input_grads = accumulate_grad ? InputGrads::kAccumulated : InputGrads::kReturned;
  return run_handed_over({graph_root, writable, inputs, input_grads});
}

// A child of fork has only the thread that forked, so no other may hold a lock at that moment.
void guard_forks() {
  static constexpr auto release = [] {
    listener_mutex().unlock();
    process_session_mutex().unlock();
    Statistics::mutex().unlock();
    plans_mutex().unlock();
    direct_entry_mutex().unlock();
  };
  const auto release_in_child = [] {
    forget_direct_entries_of_parent();
    release();
  };
  const auto hold = [] {
    direct_entry_mutex().lock();
    plans_mutex().lock();
    Statistics::mutex().lock();
    process_session_mutex().lock();
    listener_mutex().lock();
  };
  pthread_atfork(hold, release, release_in_child);
}

}  // namespace

void install_engine_hook() {
  static const bool guarded = (guard_forks(), true);
  static_cast<void>(guarded);
  torch_private::find_current_node();
  Engine::set_compiled_autograd(compiled_autograd);
}

}  // namespace backbind
