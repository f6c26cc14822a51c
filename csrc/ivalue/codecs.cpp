// How a saved value of each C++ type becomes the arguments of a functional operator, and is made of them again: one
// Codec for each type of the rows in codegen/model/saved_types.py. Saved tensors are written by pack.cpp, which unpacks
// them.
#include <ATen/TensorGeometry.h>
#include <ATen/core/List.h>
#include <c10/util/Exception.h>

#include <iterator>
#include <utility>

#include "ivalue/pack.h"
#include "ivalue/unpack.h"

namespace backbind {

using c10::IValue;

namespace {

using Values = std::vector<IValue>;

template <class T>
struct Codec;

// Types that an IValue holds as they are.
template <class T>
struct Direct {
  static void write(Values& to, const T& value) { to.emplace_back(value); }
  static T read(ArgumentReader& from) { return from.next().to<T>(); }
};
template <>
struct Codec<bool> : Direct<bool> {};
template <>
struct Codec<int64_t> : Direct<int64_t> {};
template <>
struct Codec<double> : Direct<double> {};
template <>
struct Codec<c10::SymInt> : Direct<c10::SymInt> {};
template <>
struct Codec<at::Scalar> : Direct<at::Scalar> {};
template <>
struct Codec<std::string> : Direct<std::string> {};

template <>
struct Codec<at::ScalarType> {
  static void write(Values& to, at::ScalarType value) { to.emplace_back(value); }
  static at::ScalarType read(ArgumentReader& from) { return checked(from, from.next().toInt()); }

  static at::ScalarType checked(const ArgumentReader& from, int64_t number) {
    TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(at::ScalarType::NumOptions) &&
                          number != static_cast<int64_t>(at::ScalarType::Undefined),
                      from.node(), ": ", number, " is not the number of a dtype");
    return static_cast<at::ScalarType>(number);
  }
};

template <>
struct Codec<at::Layout> {
  static void write(Values& to, at::Layout value) { to.emplace_back(value); }
  static at::Layout read(ArgumentReader& from) {
    const int64_t number = from.next().toInt();
    TORCH_CHECK_VALUE(number >= 0 && number < static_cast<int64_t>(at::Layout::NumOptions), from.node(), ": ", number,
                      " is not the number of a layout");
    return static_cast<at::Layout>(number);
  }
};

template <>
struct Codec<at::Device> : Direct<at::Device> {};

// The length of a list of tensors.
template <>
struct Codec<size_t> {
  // Far above any real list of tensors, far below what would exhaust memory before it can be refused.
  static constexpr int64_t kLargest = int64_t{1} << 24;

  static void write(Values& to, size_t value) { to.emplace_back(static_cast<int64_t>(value)); }
  static size_t read(ArgumentReader& from) {
    const int64_t size = from.next().toInt();
    TORCH_CHECK_VALUE(size >= 0 && size <= kLargest, from.node(), ": a list size must lie between 0 and ", kLargest,
                      ", got ", size);
    return static_cast<size_t>(size);
  }
};

template <class T>
struct Codec<std::optional<T>> {
  static void write(Values& to, const std::optional<T>& value) {
    if (value.has_value()) return Codec<T>::write(to, *value);
    to.emplace_back();
  }
  static std::optional<T> read(ArgumentReader& from) {
    if (!from.peek().isNone()) return Codec<T>::read(from);
    from.next();
    return std::nullopt;
  }
};

template <>
struct Codec<std::vector<int64_t>> {
  static void write(Values& to, const std::vector<int64_t>& value) { to.emplace_back(value); }
  static std::vector<int64_t> read(ArgumentReader& from) { return from.next().toIntVector(); }
};

template <>
struct Codec<std::vector<c10::SymInt>> {
  static void write(Values& to, c10::SymIntArrayRef value) { to.emplace_back(value); }
  static std::vector<c10::SymInt> read(ArgumentReader& from) { return from.next().toSymIntVector(); }
};

template <class T>
struct Codec<c10::OptionalArray<T>> {
  static void write(Values& to, const c10::OptionalArray<T>& value) {
    Codec<std::optional<std::vector<T>>>::write(to, value.list);
  }
  static c10::OptionalArray<T> read(ArgumentReader& from) {
    c10::OptionalArray<T> array;
    array.list = Codec<std::optional<std::vector<T>>>::read(from);
    return array;
  }
};

template <>
struct Codec<std::vector<at::Scalar>> {
  static void write(Values& to, const std::vector<at::Scalar>& value) {
    // torch empties the list when it releases it and raises no flag; no forward that made a node took an empty one.
    TORCH_CHECK(!value.empty(), torch::autograd::ERR_BACKWARD_TWICE);
    c10::impl::GenericList list(c10::NumberType::get());
    list.reserve(value.size());
    for (const at::Scalar& scalar : value) list.push_back(IValue(scalar));
    to.emplace_back(std::move(list));
  }
  static std::vector<at::Scalar> read(ArgumentReader& from) {
    std::vector<at::Scalar> scalars;
    const auto list = from.next().toList();  // a list of ints or floats is held unboxed, so elements are read singly
    scalars.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) scalars.push_back(list.get(i).toScalar());
    return scalars;
  }
};

template <>
struct Codec<std::vector<at::ScalarType>> {
  static void write(Values& to, const std::vector<at::ScalarType>& value) {
    std::vector<int64_t> numbers;
    for (const at::ScalarType type : value) numbers.push_back(static_cast<int64_t>(type));
    to.emplace_back(std::move(numbers));
  }
  static std::vector<at::ScalarType> read(ArgumentReader& from) {
    std::vector<at::ScalarType> types;
    const auto list = from.next().toList();  // of ints, or of anything where it came from Python's dispatcher
    types.reserve(list.size());
    for (size_t i = 0; i < list.size(); ++i) {
      types.push_back(Codec<at::ScalarType>::checked(from, list.get(i).toInt()));
    }
    return types;
  }
};

template <>
struct Codec<at::TensorOptions> {
  static void write(Values& to, const at::TensorOptions& value) {
    Codec<std::optional<at::ScalarType>>::write(to, c10::optTypeMetaToScalarType(value.dtype_opt()));
    Codec<std::optional<at::Layout>>::write(to, value.layout_opt());
    Codec<std::optional<at::Device>>::write(to, value.device_opt());
    Codec<std::optional<bool>>::write(to, value.pinned_memory_opt());
  }
  static at::TensorOptions read(ArgumentReader& from) {
    at::TensorOptions options;
    if (const auto dtype = from.read<std::optional<at::ScalarType>>()) options = options.dtype(*dtype);
    if (const auto layout = Codec<std::optional<at::Layout>>::read(from)) options = options.layout(*layout);
    if (const auto device = Codec<std::optional<at::Device>>::read(from)) options = options.device(*device);
    if (const auto pinned = Codec<std::optional<bool>>::read(from)) options = options.pinned_memory(*pinned);
    return options;
  }
};

template <>
struct Codec<torch::autograd::TypeAndSize> {
  static void write(Values& to, const torch::autograd::TypeAndSize& value) {
    Codec<std::vector<c10::SymInt>>::write(to, value.sym_sizes);
    Codec<at::TensorOptions>::write(to, value.options);
  }
  static torch::autograd::TypeAndSize read(ArgumentReader& from) {
    torch::autograd::TypeAndSize value;
    value.sym_sizes = Codec<std::vector<c10::SymInt>>::read(from);
    value.options = Codec<at::TensorOptions>::read(from);
    return value;
  }
};

template <>
struct Codec<at::TensorGeometry> {
  static void write(Values& to, const at::TensorGeometry& value) {
    Codec<std::vector<c10::SymInt>>::write(to, value.sym_sizes());
    Codec<std::vector<c10::SymInt>>::write(to, value.sym_strides());
    Codec<c10::SymInt>::write(to, value.sym_storage_offset());
  }
  static at::TensorGeometry read(ArgumentReader& from) {
    auto sizes = Codec<std::vector<c10::SymInt>>::read(from);
    auto strides = Codec<std::vector<c10::SymInt>>::read(from);
    TORCH_CHECK_VALUE(sizes.size() == strides.size(), from.node(), ": a geometry needs as many strides as sizes, got ",
                      strides.size(), " and ", sizes.size());
    return at::TensorGeometry(std::move(sizes), std::move(strides), Codec<c10::SymInt>::read(from));
  }
};

// Lists of lists: all values, and how many are in each list.
template <class T>
struct Codec<std::vector<std::vector<T>>> {
  using Lists = std::vector<std::vector<T>>;

  static void write(Values& to, const Lists& value) {
    std::vector<T> flat;
    std::vector<int64_t> lengths;
    for (const std::vector<T>& list : value) {
      flat.insert(flat.end(), list.begin(), list.end());
      lengths.push_back(static_cast<int64_t>(list.size()));
    }
    Codec<std::vector<T>>::write(to, flat);
    Codec<std::vector<int64_t>>::write(to, lengths);
  }

  static Lists read(ArgumentReader& from) {
    std::vector<T> flat = Codec<std::vector<T>>::read(from);
    const std::vector<int64_t> lengths = Codec<std::vector<int64_t>>::read(from);
    Lists lists;
    lists.reserve(lengths.size());
    auto next = std::make_move_iterator(flat.begin());
    int64_t left = static_cast<int64_t>(flat.size());
    for (const int64_t length : lengths) {
      TORCH_CHECK_VALUE(length >= 0 && length <= left, from.node(),
                        ": the lengths of nested lists must be non-negative and add up to the number of values (",
                        flat.size(), ")");
      lists.emplace_back(next, next + length);
      next += length;
      left -= length;
    }
    TORCH_CHECK_VALUE(left == 0, from.node(), ": the lengths of nested lists must add up to the number of values (",
                      flat.size(), "), ", left, " values are left over");
    return lists;
  }
};

}  // namespace

template <class T>
void PackWriter::write(const T& value) {
  Codec<T>::write(values_, value);
}

template <class T>
T ArgumentReader::read() {
  return Codec<T>::read(*this);
}

template <>
at::Tensor ArgumentReader::read() {
  const IValue& value = next();
  return value.isNone() ? at::Tensor() : value.toTensor();
}

template <>
std::vector<at::Tensor> ArgumentReader::read() {
  return next().toTensorVector();
}

template <>
c10::List<std::optional<at::Tensor>> ArgumentReader::read() {
  const IValue& value = next();
  c10::List<std::optional<at::Tensor>> list;
  for (const IValue& element : value.toListRef()) {
    const bool defined = !element.isNone() && element.toTensor().defined();
    list.push_back(defined ? std::make_optional(element.toTensor()) : std::nullopt);
  }
  return list;
}

// The values of rows, which generated code writes and reads.
#define BACKBIND_VALUE(...)                            \
  template void PackWriter::write(const __VA_ARGS__&); \
  template __VA_ARGS__ ArgumentReader::read();
BACKBIND_VALUE(bool)
BACKBIND_VALUE(std::optional<bool>)
BACKBIND_VALUE(int64_t)
BACKBIND_VALUE(std::optional<int64_t>)
BACKBIND_VALUE(size_t)
BACKBIND_VALUE(std::vector<int64_t>)
BACKBIND_VALUE(c10::OptionalArray<int64_t>)
BACKBIND_VALUE(c10::SymInt)
BACKBIND_VALUE(std::optional<c10::SymInt>)
BACKBIND_VALUE(std::vector<c10::SymInt>)
BACKBIND_VALUE(c10::OptionalArray<c10::SymInt>)
BACKBIND_VALUE(double)
BACKBIND_VALUE(std::optional<double>)
BACKBIND_VALUE(at::Scalar)
BACKBIND_VALUE(std::optional<at::Scalar>)
BACKBIND_VALUE(std::vector<at::Scalar>)
BACKBIND_VALUE(at::ScalarType)
BACKBIND_VALUE(std::vector<at::ScalarType>)
BACKBIND_VALUE(at::Layout)
BACKBIND_VALUE(std::string)
BACKBIND_VALUE(std::optional<std::string>)
BACKBIND_VALUE(at::TensorOptions)
BACKBIND_VALUE(torch::autograd::TypeAndSize)
BACKBIND_VALUE(at::TensorGeometry)
BACKBIND_VALUE(std::vector<std::vector<int64_t>>)
BACKBIND_VALUE(std::vector<std::vector<c10::SymInt>>)
#undef BACKBIND_VALUE

}  // namespace backbind
