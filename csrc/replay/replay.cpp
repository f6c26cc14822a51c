#include "replay/replay.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "gradients/validate.h"
#include "hooks/final_callbacks.h"
#include "hooks/node_hooks.h"
#include "nodes/autograd_keys.h"
#include "replay/accumulate.h"
#include "replay/foreign_kernels.h"
#include "replay/input_buffers.h"
#include "thread_modes.h"
#include "torch_private.h"

namespace backbind {

namespace {

using torch::autograd::Node;

// One run of a plan.
class Replay {
 public:
  Replay(const Plan& plan, const Lowering& lowering, const LiveNodes& nodes, const Request& request, RunReport& report)
      : plan_(plan),
        lowering_(lowering),
        nodes_(nodes),
        request_(request),
        report_(report),
        buffers_(plan.buffer_count),
        returned_(plan.inputs.size()),
        workspace_(plan.max_num_edges) {}

  // Without the final callbacks, as resume().
  variable_list run() {
    // What the engine sets for each node, above all the grad mode: create_graph decides that, not the caller.
    const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
    note_modes();
    enter_roots();
    return run_steps(0);
  }

  variable_list resume(Progress&& progress) {
    const at::ThreadLocalStateGuard state(request_.task.thread_locals_);
    note_modes();
    returned_ = std::move(progress.returned);
    returned_.resize(plan_.inputs.size());
    for (auto& [input, gradient] : progress.buffers) add(input, std::move(gradient), /*below_autograd=*/false);
    size_t first = progress.first_step;
    if (progress.has_called_pre_hooks) {
      const Step& step = plan_.steps[first];
      Node& node = *nodes_[first];
      guarded(node, [&] { execute_live(first, step, node, /*from_call=*/true); });
      first += 1;
    }
    return run_steps(first);
  }

 private:
  void note_modes() {
    modes_ = ThreadModes();
    can_skip_autograd_keys_ = can_skip_autograd_keys();
    if (can_skip_autograd_keys_) foreign_kernels_ = ForeignKernels(plan_);
  }

  variable_list run_steps(size_t first) {
    for (size_t i = first; i < plan_.steps.size(); ++i) {
      evaluate(*nodes_[i], [&] { run_step(i); });
      // The engine takes each node out when its turn comes, so nobody can ask for the whole order from now on.
      if (i == first) torch_private::release_dependencies(request_.task);
    }
    return std::move(returned_);
  }

  void enter_roots() {
    Node& graph_root = *request_.graph_root;
    if (torch_private::skips_graph_root(graph_root)) return add_roots(torch_private::root_gradients(graph_root));
    const torch_private::CurrentNodeGuard current_node(graph_root);
    add_roots(evaluate(graph_root, [&] {
      variable_list gradients = graph_root(variable_list());
      guarded(graph_root, [&] { check_for_anomaly(graph_root, gradients); });
      return gradients;
    }));
  }

  void add_roots(variable_list&& gradients) {
    const bool below_autograd = can_skip_autograd_keys_ && foreign_kernels_.of_sums() == nullptr;
    for (size_t i = 0; i < plan_.roots.size(); ++i) add(plan_.roots[i], std::move(gradients[i]), below_autograd);
    // The engine begins a backward from one root at that root, whose hooks it calls even if nobody asks for anything
    // behind it.
    const auto& roots = request_.roots();
    if (roots.size() == 1 && plan_.roots[0].step == InputRef::kNotNeeded) call_hooks_of_root_not_needed(roots[0]);
  }

  void call_hooks_of_root_not_needed(const torch::autograd::Edge& root) {
    Node& node = *root.function;
    variable_list gradients(node.num_inputs());
    gradients[root.input_nr] = std::move(torch_private::root_gradients(*request_.graph_root)[0]);
    const torch_private::CurrentNodeGuard current_node(node);
    call_retains_grad_hooks(node, call_tensor_pre_hooks(node, std::move(gradients)));
    restore_modes();
  }

  void add(const InputRef& input, at::Tensor&& gradient, bool below_autograd) {
    if (!input.is_followed()) return;
    buffers_.add(plan_.buffer_of(input), std::move(gradient), nodes_[input.step], below_autograd);
  }

  // Runs `body` inside the event that a profiler sees around a node, if there is one that looks.
  template <class Body>
  static auto evaluate(const Node& node, Body body) -> decltype(body()) {
    if (!at::getStepCallbacksUnlessEmpty(at::RecordScope::FUNCTION).has_value()) [[likely]]
      return body();
    RECORD_FUNCTION("autograd::engine::evaluate_function: " + node.name(), c10::ArrayRef<const c10::IValue>());
    return body();
  }

  void run_step(size_t position) {
    const Step& step = plan_.steps[position];
    Node& node = *nodes_[position];
    guarded(node, [&] {
      const WatchedOperator* foreign = foreign_kernels_.of(step);
      const std::optional<SlowPathReason> reason = run_directly(step, node, foreign);
      if (!reason.has_value()) return;
      if (*reason == SlowPathReason::kForeignKernel) [[unlikely]] {
        report_.slow_path.add_foreign_kernel(step.node_type, foreign->name());
      } else {
        report_.slow_path.add(step.node_type, *reason);
      }
      if (request_.note_graph() && position > 0) torch_private::release_dependencies(request_.task);
      execute_live(position, step, node, /*from_call=*/false);
    });
  }

  // Runs `body`, and has the engine note down what it raises.
  template <class Body>
  void guarded(Node& node, Body body) {
    try {
      body();
    } catch (std::exception& error) {
      // The engine keeps a Python exception safe until the thread that asked for the backward raises it.
      torch::autograd::Engine::get_default_engine().thread_on_exception(request_.task.shared_from_this(), node.getptr(),
                                                                        error);
      throw;
    }
  }

  void execute_live(size_t position, const Step& step, Node& node, bool from_call) {
    const torch_private::CurrentNodeGuard current_node(node);
    execute(position, step, node, from_call);
    restore_modes();
  }

  // Hooks, functions and tensor subclasses may leave a mode of the thread behind. What their own step still does feels
  // it, as in the engine; the next node does not.
  void restore_modes() {
    if (ThreadModes() != modes_) [[unlikely]]
      at::ThreadLocalState::setThreadLocalState(request_.task.thread_locals_);
  }

  // The slow path: each operation of the step on the live node; those before its call only without `from_call`.
  void execute(size_t position, const Step& step, Node& node, bool from_call) {
    variable_list gradients = buffers_.take(step);
    variable_list results;
    bool is_behind_hooks = !from_call;
    for (const Operation& operation : lowering_.operations_of(position)) {
      is_behind_hooks |= operation.kind == OperationKind::kCall || operation.kind == OperationKind::kAccumulate;
      if (!is_behind_hooks) continue;
      switch (operation.kind) {
        case OperationKind::kTensorPreHooks:
          if (!node.tensor_pre_hooks().empty()) gradients = call_tensor_pre_hooks(node, std::move(gradients));
          break;
        case OperationKind::kRetainGrad:
          if (!node.retains_grad_hooks().empty()) gradients = call_retains_grad_hooks(node, std::move(gradients));
          break;
        case OperationKind::kReturnGrad:
          return_grad(plan_.returned_grads_of(step)[operation.operand], gradients);
          break;
        case OperationKind::kPreHooks:
          if (!node.pre_hooks().empty()) gradients = call_pre_hooks(node, std::move(gradients));
          break;
        case OperationKind::kCall:
        case OperationKind::kAccumulate:
          results = call(node, gradients);
          break;
        case OperationKind::kValidateGrads:
          validate_grads(node, results);
          break;
        case OperationKind::kPostHooks:
          if (!node.post_hooks().empty()) results = call_post_hooks(node, std::move(results), gradients);
          break;
        case OperationKind::kRelease:
          // Before the results are added: a sum may reuse the memory of a gradient that nobody else holds.
          gradients.clear();
          release(node, results);
          break;
        case OperationKind::kAddToBuffer:
          add(plan_.next_edges_of(step)[operation.operand], std::move(results[operation.operand]),
              /*below_autograd=*/false);
          break;
      }
    }
  }

  void return_grad(const ReturnedGrad& returned, std::span<const at::Tensor> gradients) {
    returned_[returned.result] = gradients[returned.input_nr];
  }

  // Leaves `gradients` as they are only where a hook behind the node wants them.
  variable_list call(Node& node, variable_list& gradients) {
    if (!request_.task.keep_graph_) node.will_release_variables();
    if (node.post_hooks().empty()) [[likely]]
      return node(std::move(gradients));
    variable_list copies = gradients;
    return node(std::move(copies));
  }

  void release(Node& node, std::span<at::Tensor> results) {
    if (!request_.task.keep_graph_) node.release_variables();
    check_for_anomaly(node, results);
  }

  // A hook may have switched anomaly mode on meanwhile.
  static void check_for_anomaly(Node& node, std::span<at::Tensor> results) {
    if (torch::autograd::AnomalyMode::is_enabled() && torch::autograd::AnomalyMode::should_check_nan()) [[unlikely]] {
      refuse_nan(node, results);
    }
  }

  static void refuse_nan(Node& node, std::span<at::Tensor> results) {
    const at::AutoGradMode without_graph(false);
    for (size_t i = 0; i < results.size(); ++i) {
      if (!results[i].defined() || !at::isnan(results[i])._is_any_true().item<bool>()) continue;
      throw std::runtime_error("Function '" + node.name() + "' returned nan values in its " + std::to_string(i) +
                               "th output.");
    }
  }

  // Does what the operations of a step amount to where nobody can see the difference, without the node's own call;
  // otherwise does nothing that the slow path would not do again, and says why not.
  std::optional<SlowPathReason> run_directly(const Step& step, Node& node, const WatchedOperator* foreign) {
    if (!can_skip_autograd_keys_) return SlowPathReason::kActiveModes;
    if (has_hooks(node) || (step.is_accumulate_grad && node.tensor_post_acc_grad_hooks() != nullptr))
      return SlowPathReason::kHooks;
    if (foreign != nullptr) return SlowPathReason::kForeignKernel;
    for (const ReturnedGrad& returned : plan_.returned_grads_of(step)) return_grad(returned, buffers_.of(step));
    if (!step.runs) {
      for (at::Tensor& gradient : buffers_.of(step)) gradient.reset();
      return std::nullopt;
    }
    if (step.is_accumulate_grad) {
      if (!accumulate(node, buffers_.of(step)[0])) return SlowPathReason::kAccumulation;
      return std::nullopt;
    }
    if (step.binding == nullptr) return SlowPathReason::kOpaque;
    if (!step.has_formulas) return step.binding->is_inline ? SlowPathReason::kEdges : SlowPathReason::kNoFormulas;
    if (!run_formulas(step, node)) return SlowPathReason::kTensors;
    return std::nullopt;
  }

  // kCall, kValidateGrads, kRelease and kAddToBuffer below autograd's dispatch keys. Returns whether it could be done.
  bool run_formulas(const Step& step, Node& node) {
    const auto gradients = buffers_.of(step);
    if (!std::all_of(gradients.begin(), gradients.end(), is_plain_dense)) return false;
    const std::span<at::Tensor> results(workspace_.data(), step.num_edges);
    if (!step.binding->step(node, {gradients, plan_.needs_input_grad_of(step), results})) return false;
    for (at::Tensor& gradient : gradients) gradient.reset();
    validate_grads_below_autograd(node, results);
    release(node, results);
    const auto edges = plan_.next_edges_of(step);
    for (size_t i = 0; i < edges.size(); ++i) add(edges[i], std::move(results[i]), /*below_autograd=*/true);
    for (at::Tensor& result : results) result.reset();
    return true;
  }

  const Plan& plan_;
  const Lowering& lowering_;
  const LiveNodes& nodes_;
  const Request& request_;
  RunReport& report_;
  InputBuffers buffers_;
  variable_list returned_;
  // Where formulas put their results before they are added to buffers.
  std::vector<at::Tensor> workspace_;
  ThreadModes modes_;
  // Whether formulas may run below autograd's dispatch keys, as far as modes decide it.
  bool can_skip_autograd_keys_ = false;
  ForeignKernels foreign_kernels_;
};

class ReplayExecutable final : public ResumableExecutable {
 public:
  ReplayExecutable(PlanPtr plan, std::shared_ptr<const Lowering> lowering)
      : plan_(std::move(plan)), lowering_(std::move(lowering)) {}

  variable_list run(const LiveNodes& nodes, const Request& request, RunReport& report) const override {
    variable_list gradients = Replay(*plan_, *lowering_, nodes, request, report).run();
    call_final_callbacks(request.task);
    return gradients;
  }

  variable_list resume(const LiveNodes& nodes, const Request& request, RunReport& report,
                       Progress progress) const override {
    return Replay(*plan_, *lowering_, nodes, request, report).resume(std::move(progress));
  }

 private:
  const PlanPtr plan_;
  const std::shared_ptr<const Lowering> lowering_;
};

}  // namespace

ExecutablePtr NativeBackend::prepare(PlanPtr plan, std::shared_ptr<const Lowering> lowering) const {
  return prepare_resumable(std::move(plan), std::move(lowering));
}

std::shared_ptr<const ResumableExecutable> NativeBackend::prepare_resumable(PlanPtr plan,
                                                                            std::shared_ptr<const Lowering> lowering) {
  return std::make_shared<const ReplayExecutable>(std::move(plan), std::move(lowering));
}

BackendPtr native_backend() {
  static const BackendPtr backend = std::make_shared<const NativeBackend>();
  return backend;
}

}  // namespace backbind
