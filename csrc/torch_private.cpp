#include "torch_private.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/PythonDispatcherTLS.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/functions/basic_ops.h>
#include <torch/csrc/autograd/graph_task.h>

namespace backbind::torch_private {

using torch::autograd::variable_list;

namespace {

// Names a protected member from a derived class, as the language allows; no object of this type is ever made.
struct KeySetAccess : c10::TensorImpl {
  static constexpr c10::DispatchKeySet c10::TensorImpl::* member() { return &KeySetAccess::key_set_; }
};

// The language lets an explicit instantiation name a private member; the friend hands it on.
using DelayedWarnings = torch::autograd::utils::DelayWarningHandler;
using WarningList = std::vector<c10::Warning> DelayedWarnings::*;
WarningList delayed_warnings();
template <WarningList member>
struct WarningListAccess {
  friend WarningList delayed_warnings() { return member; }
};
template struct WarningListAccess<&DelayedWarnings::warnings_>;

using torch::autograd::SavedVariable;
struct SavedFields {
  at::Tensor SavedVariable::* data;
  uint32_t SavedVariable::* version;
  bool SavedVariable::* holds_nothing;
  bool SavedVariable::* is_leaf;
  bool SavedVariable::* is_output;
};
constexpr SavedFields saved_fields();
template <SavedFields fields>
struct SavedFieldsAccess {
  friend constexpr SavedFields saved_fields() { return fields; }
};
template struct SavedFieldsAccess<SavedFields{&SavedVariable::data_, &SavedVariable::saved_version_,
                                              &SavedVariable::was_default_constructed_, &SavedVariable::is_leaf_,
                                              &SavedVariable::is_output_}>;

// The type of the entry is private too, so nothing but the compiler ever names it.
constexpr auto entry_of_operator();
template <auto member>
struct OperatorEntryAccess {
  friend constexpr auto entry_of_operator() { return member; }
};
template struct OperatorEntryAccess<&c10::OperatorHandle::operatorDef_>;

// Never made; see KeySetAccess.
struct MutexAccess : torch::autograd::Node {
  static constexpr std::mutex torch::autograd::Node::* member() { return &MutexAccess::mutex_; }
};

struct UnnumberedGraphRoot final : torch::autograd::Node {
  UnnumberedGraphRoot(torch::autograd::edge_list&& roots, torch::autograd::variable_list&& values)
      : Node(/*sequence_nr=*/uint64_t{0}, std::move(roots)), gradients(std::move(values)) {
    for (const at::Tensor& gradient : gradients) add_input_metadata(gradient);
  }

  torch::autograd::variable_list apply(torch::autograd::variable_list&& /*inputs*/) override { return gradients; }
  std::string name() const override { return "torch::autograd::GraphRoot"; }

  const torch::autograd::variable_list gradients;
};

}  // namespace

at::Tensor as_ordinary_tensor(const at::Tensor& inference_tensor) {
  auto impl = inference_tensor.unsafeGetTensorImpl()->shallow_copy_and_detach(
      /*version_counter=*/c10::VariableVersion(0), /*allow_tensor_metadata_change=*/true);
  auto& keys = impl.get()->*KeySetAccess::member();
  keys = keys | c10::getAutogradRelatedKeySetFromBackend(keys.highestBackendKey()) |
         c10::DispatchKeySet(c10::DispatchKey::ADInplaceOrView);
  // A tensor that is made while inference mode is on comes without a counter, whatever its keys become.
  if (!impl->version_counter().enabled()) impl->set_version_counter(c10::VariableVersion(0));
  return at::Tensor(std::move(impl));
}

c10::intrusive_ptr<torch::autograd::Node> wanted_by_running_backward() {
  const auto* exec_info = torch::autograd::get_current_graph_task_exec_info();
  if (exec_info == nullptr) return {};
  // A CopySlices notes its inner node down, too, which is in no graph and may have been freed meanwhile.
  const auto* in_graph = torch::autograd::get_current_graph_task_nodes_in_graph();
  torch::autograd::Node* elsewhere = nullptr;
  for (const auto& [node, info] : *exec_info) {
    if (!info.should_execute()) continue;
    if (in_graph != nullptr && in_graph->contains(node)) return node->getptr();
    if (elsewhere == nullptr) elsewhere = node;
  }
  // Nothing but a lone root, which is not counted among the graph's nodes (erase_skipped_graph_root).
  return elsewhere == nullptr ? c10::intrusive_ptr<torch::autograd::Node>() : elsewhere->getptr();
}

bool skips_graph_root(const torch::autograd::Node& graph_root) {
  return graph_root.num_outputs() == 1 && graph_root.next_edge(0).is_valid() && !at::getAccelerator().has_value();
}

void erase_skipped_graph_root(const torch::autograd::Node& graph_root, torch::autograd::GraphTask& task) {
  if (!skips_graph_root(graph_root)) return;
  torch::autograd::Node* first = graph_root.next_edge(0).function.get();
  task.nodes_in_graph_.erase(first);
  task.dependencies_.erase(first);
}

void release_dependencies(torch::autograd::GraphTask& task) { task.dependencies_ = decltype(task.dependencies_)(); }

torch::autograd::variable_list run_in_engine(const c10::intrusive_ptr<torch::autograd::Node>& root,
                                             torch::autograd::GraphTask& task) {
  using torch::autograd::InputBuffer;
  auto& engine = torch::autograd::Engine::get_default_engine();
  c10::intrusive_ptr<torch::autograd::Node> first = root;
  InputBuffer inputs{variable_list()};
  if (skips_graph_root(*root)) {
    first = root->next_edge(0).function;
    // The engine looks the node that it begins at up among those that it decided about, in which a lone root is missing
    // where nothing that is asked for lies behind it.
    if (!task.exec_info_.empty()) task.exec_info_[first.get()];
    inputs = InputBuffer(first->num_inputs());
    inputs.add(root->next_edge(0).input_nr, std::move(root_gradients(*root)[0]), std::nullopt, std::nullopt,
               first.get());
  }
  const auto future = engine.execute_with_graph_task(task.shared_from_this(), std::move(first), std::move(inputs));
  future->wait();
  for (const c10::Warning& warning : task.warning_handler_.*delayed_warnings()) c10::warn(warning);
  return future->value().toTensorVector();
}

c10::intrusive_ptr<torch::autograd::Node> make_graph_root(torch::autograd::edge_list&& roots,
                                                          variable_list&& gradients) {
  return c10::make_intrusive<UnnumberedGraphRoot>(std::move(roots), std::move(gradients));
}

void note_graph(const torch::autograd::Node& graph_root, torch::autograd::GraphTask& task) {
  std::vector<const torch::autograd::Node*> found{&graph_root};
  while (!found.empty()) {
    const torch::autograd::Node* node = found.back();
    found.pop_back();
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      torch::autograd::Node* next = edge.function.get();
      if (next == nullptr) continue;
      task.dependencies_[next] += 1;
      if (task.nodes_in_graph_.insert(next).second) found.push_back(next);
    }
  }
  erase_skipped_graph_root(graph_root, task);
}

variable_list root_gradients(const torch::autograd::Node& root) {
  if (const auto* unnumbered = dynamic_cast<const UnnumberedGraphRoot*>(&root)) return unnumbered->gradients;
  return static_cast<const torch::autograd::GraphRoot&>(root).outputs;
}

const at::Tensor* saved_tensor(const SavedVariable& saved) {
  static const at::Tensor nothing;
  if (saved.has_hooks()) return nullptr;
  if (saved.*saved_fields().holds_nothing) return &nothing;
  const at::Tensor& data = saved.*saved_fields().data;
  if (!data.defined()) return nullptr;
  // An input that had a node when it was saved, and has none now, was detached in place.
  if (!(saved.*saved_fields().is_leaf) && !(saved.*saved_fields().is_output)) {
    const auto* meta = torch::autograd::impl::get_autograd_meta(data);
    if (meta == nullptr || meta->grad_fn_ == nullptr) return nullptr;
  }
  const auto& version = data.unsafeGetTensorImpl()->version_counter();
  return version.enabled() && version.current_version() == saved.*saved_fields().version ? &data : nullptr;
}

bool is_result(const SavedVariable& saved) { return saved.*saved_fields().is_output; }

const c10::KernelFunction& kernel_in_table(const c10::OperatorHandle& overload, c10::DispatchKey key) {
  return (overload.*entry_of_operator())->op.lookup(c10::DispatchKeySet(key));
}

bool is_kernel_of_torch(const c10::OperatorHandle& overload, c10::DispatchKey key) {
  // "registered at /somewhere/pytorch/build/aten/src/ATen/RegisterSchema.cpp:6"
  const std::string& schema = overload.debug();
  const size_t end_of_root = schema.find("build/aten/");
  if (end_of_root == std::string::npos) return false;
  return overload.getComputedKernelForDispatchKey(key).debug().starts_with(schema.substr(0, end_of_root));
}

bool has_python_object(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->pyobj_slot()->load_pyobj() != nullptr;
}

void call_python_dispatcher(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack& stack) {
  const c10::impl::PyInterpreter* python = c10::impl::PythonDispatcherTLS::get_state();
  TORCH_CHECK(python != nullptr, op.operator_name(), ": the Python dispatcher is asked for, but not on");
  (*python)->python_dispatcher(op, keys.remove(c10::DispatchKey::PythonDispatcher), &stack);
}

NodeLock::NodeLock(torch::autograd::Node& node) : lock_(node.*MutexAccess::member()) {}

SavedTensorHooksPaused::SavedTensorHooksPaused() : before_(at::SavedTensorDefaultHooks::set_tracing(true)) {}
SavedTensorHooksPaused::~SavedTensorHooksPaused() { at::SavedTensorDefaultHooks::set_tracing(before_); }

}  // namespace backbind::torch_private
