#include "plan/lowering.h"

#include <map>
#include <utility>

#include "plan/bytes_of.h"

namespace backbind {

namespace {

// In the order in which Engine::evaluate_function does it.
std::vector<Operation> lower(const Plan& plan, const Step& step) {
  using enum OperationKind;
  std::vector<Operation> operations;
  const auto return_grads = [&] {
    for (uint32_t i = 0; i < step.returned_grad_count; ++i) operations.push_back({kReturnGrad, i});
  };
  if (!step.runs) {
    // Hooks are called all the same, for the sake of those who get the gradients.
    operations = {{kTensorPreHooks}, {kRetainGrad}};
    return_grads();
    return operations;
  }
  return_grads();
  for (const auto kind : {kTensorPreHooks, kRetainGrad, kPreHooks, step.is_accumulate_grad ? kAccumulate : kCall,
                          kValidateGrads, kPostHooks, kRelease}) {
    operations.push_back({kind});
  }
  const auto edges = plan.next_edges_of(step);
  for (uint32_t i = 0; i < edges.size(); ++i) {
    if (edges[i].is_followed()) operations.push_back({kAddToBuffer, i});
  }
  return operations;
}

}  // namespace

Lowering::Lowering(const Plan& plan) {
  // Steps with the same of these have the same operations.
  using Shape = std::pair<std::array<uint32_t, 2>, std::vector<uint8_t>>;
  std::map<Shape, uint32_t> known;
  range_of_step_.reserve(plan.steps.size());
  for (const Step& step : plan.steps) {
    const auto needed = plan.needs_input_grad_of(step);
    const uint32_t kind = (step.runs ? 2u : 0u) + (step.is_accumulate_grad ? 1u : 0u);
    const auto [place, is_new] = known.try_emplace(
        Shape{{kind, step.returned_grad_count}, {needed.begin(), needed.end()}}, static_cast<uint32_t>(ranges_.size()));
    if (is_new) {
      const std::vector<Operation> operations = lower(plan, step);
      ranges_.push_back({static_cast<uint32_t>(operations_.size()), static_cast<uint32_t>(operations.size())});
      operations_.insert(operations_.end(), operations.begin(), operations.end());
    }
    range_of_step_.push_back(place->second);
  }
  operations_.shrink_to_fit();
  ranges_.shrink_to_fit();
}

size_t Lowering::bytes() const {
  return sizeof(Lowering) + bytes_of(operations_) + bytes_of(ranges_) + bytes_of(range_of_step_);
}

}  // namespace backbind
