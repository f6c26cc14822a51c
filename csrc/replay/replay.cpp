#include "replay/replay.h"

#include <ATen/ThreadLocalState.h>
#include <torch/csrc/autograd/engine.h>

#include <exception>

#include "hooks/run.h"
#include "replay/fit.h"
#include "replay/slots.h"

namespace backbind {

using torch::autograd::Node;

namespace {

class Replay {
 public:
  Replay(const Plan& plan, const LiveNodes& nodes, const Request& request)
      : plan_(plan), nodes_(nodes), request_(request), slots_(plan.slot_count), results_(plan.gradients.size()) {}

  variable_list run() {
    {
      // What the engine sets for each node, above all the grad mode: create_graph decides that, not the caller.
      const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
      enter_roots();
      for (size_t i = 0; i < plan_.steps.size(); ++i) run_step(plan_.steps[i], *nodes_[i]);
    }
    run_final_callbacks();
    return std::move(results_);
  }

 private:
  void enter_roots() {
    variable_list gradients = (*request_.root)(variable_list());
    for (size_t i = 0; i < plan_.roots.size(); ++i) send(plan_.roots[i], std::move(gradients[i]));
  }

  void send(const Target& target, at::Tensor&& gradient) {
    if (target.is_followed()) slots_.add(plan_.slot_of(target), std::move(gradient), nodes_[target.step]);
  }

  void run_step(const Step& step, Node& node) {
    try {
      variable_list gradients = slots_.take(step);
      if (step.handed_out_count > 0) hand_out(step, node, gradients);
      if (!step.runs) return;
      variable_list results = call(step, node, std::move(gradients));
      if (!request_.task.keep_graph_) node.release_variables();
      const auto targets = plan_.targets_of(step);
      for (size_t i = 0; i < targets.size(); ++i) send(targets[i], std::move(results[i]));
    } catch (std::exception& error) {
      // The engine keeps a Python exception safe until the thread that asked for the backward raises it.
      torch::autograd::Engine::get_default_engine().thread_on_exception(request_.task.shared_from_this(), node.getptr(),
                                                                        error);
      throw;
    }
  }

  // A node that does not run has its tensor hooks called for the sake of those who get its gradients.
  void hand_out(const Step& step, Node& node, variable_list& gradients) {
    if (!step.runs && has_hooks_before(node)) {
      const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
      gradients = run_tensor_hooks(node, std::move(gradients));
    }
    for (const HandedOut& one : plan_.handed_out_by(step)) results_[one.output] = gradients[one.input];
  }

  variable_list call(const Step& step, Node& node, variable_list&& gradients) {
    if (!runs_foreign_code(step, node)) [[likely]]
      return call_alone(node, std::move(gradients));
    // That code may leave a mode of the thread behind; the next node never sees it.
    const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
    return call_with_hooks(node, std::move(gradients));
  }

  static bool runs_foreign_code(const Step& step, Node& node) {
    return has_hooks_before(node) || !node.post_hooks().empty() ||
           (step.accumulates ? node.tensor_post_acc_grad_hooks() != nullptr : step.binding == nullptr);
  }

  variable_list call_alone(Node& node, variable_list&& gradients) {
    if (!request_.task.keep_graph_) node.will_release_variables();
    variable_list results = node(std::move(gradients));
    fit_gradients(node, results);
    return results;
  }

  variable_list call_with_hooks(Node& node, variable_list&& gradients) {
    gradients = run_tensor_hooks(node, std::move(gradients));
    gradients = run_node_pre_hooks(node, std::move(gradients));
    if (node.post_hooks().empty()) return call_alone(node, std::move(gradients));
    variable_list copies = gradients;
    variable_list results = call_alone(node, std::move(copies));
    return run_node_post_hooks(node, std::move(results), gradients);
  }

  void run_final_callbacks() {
    auto& task = request_.task;
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

  const Plan& plan_;
  const LiveNodes& nodes_;
  const Request& request_;
  Slots slots_;
  variable_list results_;
};

}  // namespace

variable_list replay(const Plan& plan, const LiveNodes& nodes, const Request& request) {
  return Replay(plan, nodes, request).run();
}

}  // namespace backbind
