// Records what one backward calls below autograd.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/intrusive_ptr.h>

#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "recorded_call.h"

namespace flat_loop {

// A call with what it returned, or an accumulation, and the values that nothing later reads.
struct Recorded {
  std::optional<Call> call;
  std::optional<Accumulation> accumulation;
  Outputs outputs;
  std::vector<int64_t> last_used;
};

// Holds weak references alone to what a backward makes: they keep an address from being used again, and leave alone the
// counts of references by which the engine decides what it may change in place or steal.
class Recorder {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack& stack);
  void begin_accumulation(const at::Tensor& gradient, const at::Tensor& parameter);
  void end_accumulation();

  // What was recorded, with the last use of every value.
  std::vector<Recorded> finish();

  int64_t value_count() const { return value_count_; }

 private:
  Argument argument(const c10::IValue& value);
  TensorInput input(const at::Tensor& tensor);
  int64_t output(const at::Tensor& tensor);

  std::vector<Recorded> recorded_;
  int64_t value_count_ = 0;
  bool is_accumulating_ = false;
  std::unordered_map<const c10::TensorImpl*, int64_t> numbers_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>> weak_outputs_;
  // Memory that calls made, as opposed to that of constants.
  std::unordered_set<const c10::StorageImpl*> made_storages_, constant_storages_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> weak_storages_;
};

// Calls of operators in this thread, and in the backwards that it runs, go to `recorder` while this lives.
class Recording {
 public:
  explicit Recording(Recorder& recorder);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  c10::impl::IncludeDispatchKeyGuard included_;
};

}  // namespace flat_loop
