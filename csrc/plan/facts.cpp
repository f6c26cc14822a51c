#include "plan/facts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "plan/node_type_name.h"

namespace backbind {

namespace {

bool are_same(int64_t left, int64_t right) { return left == right; }
bool are_same(const Number& left, const Number& right) { return left == right; }
// Symbols are never baked in, and comparing them would ask what they stand for.
bool are_same(const c10::SymInt& left, const c10::SymInt& right) {
  const auto first = left.maybe_as_int();
  const auto second = right.maybe_as_int();
  return first.has_value() && second.has_value() && *first == *second;
}

// The first position at which two lists of facts differ where they are baked in; nothing where they are the same.
// Without `dynamic`, all of them are.
template <class Fact>
std::optional<size_t> first_difference(const std::vector<Fact>& baked, const std::vector<Fact>& other,
                                       const std::vector<bool>& dynamic) {
  const size_t common = std::min(baked.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    if ((dynamic.empty() || !dynamic[i]) && !are_same(baked[i], other[i])) return i;
  }
  if (baked.size() != other.size()) return common;
  return std::nullopt;
}

template <class Fact>
std::vector<bool> also_where_different(std::vector<bool> dynamic, const std::vector<Fact>& before,
                                       const std::vector<Fact>& now) {
  for (size_t i = 0; i < now.size(); ++i) {
    if (!are_same(before[i], now[i])) dynamic[i] = true;
  }
  return dynamic;
}

std::string text_of(const Number& number) {
  return number.is_float ? std::to_string(std::bit_cast<double>(number.bits))
                         : std::to_string(std::bit_cast<int64_t>(number.bits));
}

std::string text_of(const c10::SymInt& size) {
  const auto number = size.maybe_as_int();
  return number.has_value() ? std::to_string(*number) : "a symbol";
}

template <class Fact>
std::string change_of(const std::vector<Fact>& before, const std::vector<Fact>& now, size_t position) {
  if (position >= before.size() || position >= now.size()) return " changed";
  return " changed " + text_of(before[position]) + " -> " + text_of(now[position]);
}

std::string place_of(const FactPlace& place, const Plan& plan) {
  if (place.argument == FactPlace::kWholeBackward) return "the gradients of the outputs";
  const Step& step = plan.steps[place.step];
  const std::string node = node_type_name(*step.type);
  switch (place.argument) {
    case FactPlace::kHooks:
      return "the hooks of " + node;
    case FactPlace::kLeaf:
      return "the leaf of " + node;
    case FactPlace::kExpectedGrad:
      return "gradient " + std::to_string(place.item) + " of " + node;
    default:
      return std::string("argument '") + step.binding->arguments[place.argument].name + "' of " + node;
  }
}

}  // namespace

std::optional<FactMismatch> BakedFacts::mismatch(const Facts& other) const {
  if (const auto at = first_difference(facts.constants, other.constants, {}))
    return FactMismatch{FactKind::kConstant, *at};
  if (const auto at = first_difference(facts.sizes, other.sizes, dynamic_sizes))
    return FactMismatch{FactKind::kSize, *at};
  if (const auto at = first_difference(facts.numbers, other.numbers, dynamic_numbers))
    return FactMismatch{FactKind::kNumber, *at};
  return std::nullopt;
}

BakedFacts BakedFacts::with_changes_dynamic(Facts other) const {
  std::vector<bool> sizes = also_where_different(dynamic_sizes, facts.sizes, other.sizes);
  std::vector<bool> numbers = also_where_different(dynamic_numbers, facts.numbers, other.numbers);
  return {.facts = std::move(other), .dynamic_sizes = std::move(sizes), .dynamic_numbers = std::move(numbers)};
}

std::string describe(const FactMismatch& mismatch, const Plan& plan, const FactPlaces& places, const Facts& before,
                     const Facts& now, bool is_made_dynamic) {
  const char* consequence = is_made_dynamic ? ": made dynamic" : "";
  const auto place_in = [&](const std::vector<FactPlace>& list) {
    return mismatch.position < list.size() ? place_of(list[mismatch.position], plan) : "the backward";
  };
  switch (mismatch.kind) {
    case FactKind::kConstant:
      return place_in(places.constants) + " changed";
    case FactKind::kSize: {
      const size_t item = mismatch.position < places.sizes.size() ? places.sizes[mismatch.position].item : 0;
      const bool is_argument = mismatch.position < places.sizes.size() &&
                               places.sizes[mismatch.position].argument < FactPlace::kWholeBackward;
      return (is_argument ? "size " + std::to_string(item) + " of " : "a size of ") + place_in(places.sizes) +
             change_of(before.sizes, now.sizes, mismatch.position) + consequence;
    }
    case FactKind::kNumber:
      return "the number in " + place_in(places.numbers) + change_of(before.numbers, now.numbers, mismatch.position) +
             consequence;
  }
  return {};
}

}  // namespace backbind
