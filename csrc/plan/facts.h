// What a backend may bake into what it makes of a plan, beside the structure: values of the live graph, in the order in
// which they are read. What was made fits another graph of the same structure if the facts that it baked in are equal.
#pragma once

#include <ATen/core/Scalar.h>
#include <c10/core/SymInt.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace backbind {

// A saved number of Python: a float or an int. Its bits tell two numbers apart, so that nan is the same as nan.
struct Number {
  bool is_float;
  uint64_t bits;

  bool operator==(const Number&) const = default;
};

struct Facts {
  // Lengths of lists, dtypes, modes, which of the tensors is where, kinds of hooks ...: always baked in.
  std::vector<int64_t> constants;
  // Baked in, or given to the graph at each run.
  std::vector<c10::SymInt> sizes;
  std::vector<Number> numbers;
};

enum class FactKind : uint8_t { kConstant, kSize, kNumber };

// Where a fact was read. `argument` is a position among the arguments of the step's binding, or one of the special
// places; `item` a position in its value, for lists.
struct FactPlace {
  static constexpr uint16_t kHooks = UINT16_MAX;
  static constexpr uint16_t kLeaf = UINT16_MAX - 1;
  static constexpr uint16_t kExpectedGrad = UINT16_MAX - 2;  // `item`: the edge
  static constexpr uint16_t kWholeBackward = UINT16_MAX - 3;

  uint32_t step;
  uint16_t argument;
  uint16_t item;
};

// Where each fact was read, for those who want to know: made anew when a text is asked for.
struct FactPlaces {
  std::vector<FactPlace> constants;
  std::vector<FactPlace> sizes;
  std::vector<FactPlace> numbers;
};

// How the facts of a graph differ from those that were baked in.
struct FactMismatch {
  FactKind kind;
  size_t position;  // among the facts of that kind
};

// Facts as something was made for them; those that are dynamic are not baked in.
struct BakedFacts {
  Facts facts;
  std::vector<bool> dynamic_sizes;
  std::vector<bool> dynamic_numbers;

  // Nothing where the graph with these facts fits.
  std::optional<FactMismatch> mismatch(const Facts& other) const;

  // For another graph whose constants are the same: what was dynamic or differs here is dynamic from now on.
  BakedFacts with_changes_dynamic(Facts other) const;
};

// "size 0 of argument 'self_sym_sizes' of MmBackward0 changed 32 -> 48: made dynamic".
std::string describe(const FactMismatch& mismatch, const Plan& plan, const FactPlaces& places, const Facts& before,
                     const Facts& now, bool is_made_dynamic);

}  // namespace backbind
