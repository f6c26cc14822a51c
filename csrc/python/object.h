// Owned references to Python objects, and the errors with which Python calls end.
#pragma once

#include <c10/util/Exception.h>
#include <torch/csrc/python_headers.h>

#include <memory>
#include <utility>
#include <vector>

namespace backbind::python {

// Owns one reference; the GIL must be held whenever it is made, moved or destroyed.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) : object_(object) {}  // takes the reference over
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Another reference to an object that somebody else owns.
inline Owned shared(PyObject* object) {
  Py_INCREF(object);
  return Owned(object);
}

// Thrown where a Python error is already set; becomes the null return of a C function.
struct PythonErrorSet {};

// Takes over a new reference, or throws PythonErrorSet for null.
inline Owned checked(PyObject* object) {
  if (object == nullptr) throw PythonErrorSet();
  return Owned(object);
}

// Keeps a new list or tuple from the garbage collector, and so from everybody, until its places are filled: making
// what fills them may run code that looks at all objects there are.
class UntilFilled {
 public:
  explicit UntilFilled(const Owned& object) : object_(object.get()) { PyObject_GC_UnTrack(object_); }
  void filled() const { PyObject_GC_Track(object_); }

 private:
  PyObject* object_;
};

// A list of what `convert` makes of each item of `items`.
Owned list_of(const auto& items, auto convert) {
  Owned list = checked(PyList_New(static_cast<Py_ssize_t>(items.size())));
  const UntilFilled hidden(list);
  Py_ssize_t position = 0;
  for (const auto& item : items) PyList_SET_ITEM(list.get(), position++, convert(item).release());
  hidden.filled();
  return list;
}

// What `convert(item, position)` makes of each item of a Python list. `what` names the list in the error for anything
// else, `items` what it should hold. Each item is held meanwhile, because converting it may run code, which may change
// the list.
template <class Convert>
auto vector_of(PyObject* list, const char* what, const char* items, Convert convert) {
  TORCH_CHECK_TYPE(PyList_Check(list), what, " must be a list of ", items, ", got ", Py_TYPE(list)->tp_name);
  std::vector<decltype(convert(list, Py_ssize_t{0}))> converted;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    const Owned item = shared(PyList_GET_ITEM(list, i));
    converted.push_back(convert(item.get(), i));
  }
  return converted;
}

// A capsule of that name, which owns the value.
template <class Value>
Owned capsule_of(Value value, const char* name) {
  auto held = std::make_unique<Value>(std::move(value));
  Owned capsule = checked(PyCapsule_New(held.get(), name, [](PyObject* object) {
    const std::unique_ptr<Value> end(static_cast<Value*>(PyCapsule_GetPointer(object, PyCapsule_GetName(object))));
  }));
  static_cast<void>(held.release());  // the capsule owns it now
  return capsule;
}

// Releases the GIL while it lives.
class GilReleased {
 public:
  GilReleased() : state_(PyEval_SaveThread()) {}
  ~GilReleased() { PyEval_RestoreThread(state_); }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace backbind::python
