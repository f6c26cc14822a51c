#include "nodes/delegate.h"

#include <ATen/core/List.h>

#include "nodes/sink.h"

namespace backbind {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

namespace {

// Where the edges of delegates lead. One for the whole process and never destroyed: delegates in other threads may hold
// it while the process ends.
const c10::intrusive_ptr<Node>& shared_sink() {
  static const auto* sink = std::make_unique<c10::intrusive_ptr<Node>>(c10::make_intrusive<Sink>()).release();
  return *sink;
}

SavedVariable saved(const at::Tensor& value) {
  if (!value.defined()) return SavedVariable();
  if (value.is_inference()) [[unlikely]]
    return SavedVariable(torch_private::as_ordinary_tensor(value), false);
  return SavedVariable(value, /*is_output=*/false);
}

}  // namespace

DelegateEdges::DelegateEdges(size_t count) : sink_(torch_private::wanted_by_running_backward()) {
  if (!sink_) sink_ = shared_sink();
  edges_.reserve(count);
}

DelegateEdges::~DelegateEdges() = default;

torch::autograd::edge_list DelegateEdges::take() { return std::move(edges_); }

void DelegateEdges::add(bool needed) {
  if (needed) {
    edges_.emplace_back(sink_, 0);
  } else {
    edges_.emplace_back();
  }
}

void DelegateEdges::add_list(bool needed, size_t size) {
  for (size_t i = 0; i < size; ++i) add(needed);
}

DelegateOwner::DelegateOwner(std::unique_ptr<Node>&& node)
    : node_(c10::intrusive_ptr<Node>::unsafe_steal_from_new(node.release())) {}
DelegateOwner::~DelegateOwner() = default;

void FieldFiller::operator()(SavedVariable& field, const at::Tensor& value) { field = saved(value); }

void FieldFiller::operator()(std::vector<SavedVariable>& field, const std::vector<at::Tensor>& value) {
  field.reserve(value.size());
  for (const auto& tensor : value) field.push_back(saved(tensor));
}

void FieldFiller::operator()(std::vector<SavedVariable>& field, const c10::List<std::optional<at::Tensor>>& value) {
  field.reserve(value.size());
  for (size_t i = 0; i < value.size(); ++i) field.push_back(saved(value.get(i).value_or(at::Tensor())));
}

}  // namespace backbind
