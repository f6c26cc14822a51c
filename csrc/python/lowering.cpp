#include "python/lowering.h"

#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/functions/tensor.h>
#include <torch/csrc/autograd/variable.h>

#include <ranges>

#include "gradients/expected_grad.h"
#include "graph/lifted_values.h"
#include "hooks/node_hooks.h"
#include "ivalue/pack.h"
#include "plan/lowering.h"
#include "plan/walk.h"
#include "python/bridge.h"
#include "python/live_node.h"
#include "python/results.h"
#include "torch_private.h"

namespace backbind::python {

using torch::autograd::edge_list;
using torch::autograd::Node;

namespace {

edge_list edges_of(PyObject* tensors, const char* what) {
  return vector_of(tensors, what, "tensors", [&](PyObject* item, Py_ssize_t i) {
    TORCH_CHECK_TYPE(is_tensor(item), what, " must be tensors, element ", i, " is a ", Py_TYPE(item)->tp_name);
    const at::Tensor& tensor = tensor_of(item);
    TORCH_CHECK(tensor.requires_grad(), "element ", i, " of ", what,
                " does not require grad and does not have a grad_fn");
    return torch::autograd::impl::gradient_edge(tensor);
  });
}

Owned none() { return checked(Py_BuildValue("")); }

// What a node is that has no operator, or null.
const char* kind_of(const Step& step, Node& node) {
  if (!step.runs || step.binding != nullptr) return nullptr;
  if (step.is_accumulate_grad) return "accumulate_grad";
  if (is_python_function(node)) return "python";
  return dynamic_cast<torch::autograd::CopySlices*>(&node) != nullptr ? "copy_slices" : "cpp";
}

Owned expected_to_python(const std::optional<ExpectedGrad>& expected, ValueWriter& writer) {
  if (!expected.has_value()) return none();
  const Owned sizes = list_of(expected->sizes, [&](const c10::SymInt& size) { return writer.size(size); });
  const Owned device = expected->device.has_value() ? checked(THPDevice_New(*expected->device)) : none();
  PyObject* dtype =
      expected->dtype.has_value() ? reinterpret_cast<PyObject*>(torch::getTHPDtype(*expected->dtype)) : Py_None;
  return checked(Py_BuildValue("(OOO)", sizes.get(), dtype, device.get()));
}

// What is expected of the gradient that `source` sends to an input; null for that of an output.
Owned expected_at(const LiveNodes& nodes, const InputRef& input, const Node* source, ValueWriter& writer) {
  if (!input.is_followed()) return none();
  return expected_to_python(expected_grad(nodes[input.step]->input_metadata(input.input_nr), source), writer);
}

// Records of one lowering.
class Records {
 public:
  Records(const LiveLowering& live, ValueWriter& writer) : live_(live), writer_(writer) {}

  Owned step(size_t position) {
    const Step& step = live_.plan.steps[position];
    Node& node = *live_.nodes[position];
    writer_.begin_step();
    const Owned hooks = list_of(HookSet(node, step.runs).names(),
                                [](const std::string& name) { return checked(PyUnicode_FromString(name.c_str())); });
    const Owned values = has_operator(step) ? packed(step, node) : none();
    const Owned operations = list_of(live_.lowering.operations_of(position), [&](const Operation& one) {
      const Owned operand = this->operand(position, one);
      return checked(Py_BuildValue("(sO)", kOperationNames[static_cast<size_t>(one.kind)], operand.get()));
    });
    const Owned live = writer_.live(position);
    const char* operator_name = step.binding != nullptr ? step.binding->name : nullptr;
    return checked(Py_BuildValue("(szzIOOOO)", node.name().c_str(), operator_name, kind_of(step, node),
                                 static_cast<unsigned>(step.num_inputs), hooks.get(), values.get(), operations.get(),
                                 live.get()));
  }

 private:
  Owned packed(const Step& step, Node& node) {
    // As the walk decided it: an edge whose gradient nobody asked for is not needed.
    const std::vector<bool> needed = needed_edges(live_.plan, step);
    PackWriter values(node, &needed, writer_.calls_unpack_hooks() ? UnpackHooks::kCall : UnpackHooks::kLeave);
    step.binding->pack(node, values);
    return packed_to_python(*step.binding, values.take(), writer_);
  }

  // What an operation works on, besides its step.
  Owned operand(size_t position, const Operation& operation) {
    const Plan& plan = live_.plan;
    const Step& step = plan.steps[position];
    switch (operation.kind) {
      case OperationKind::kReturnGrad: {
        const ReturnedGrad& returned = plan.returned_grads_of(step)[operation.operand];
        return checked(Py_BuildValue("(II)", returned.input_nr, returned.result));
      }
      case OperationKind::kAccumulate:
        return writer_.leaf(static_cast<torch::autograd::AccumulateGrad&>(*live_.nodes[position]).variable);
      case OperationKind::kValidateGrads:
        // An opaque node is validated where it is called, by its own edges.
        return list_of(plan.next_edges_of(step), [&](const InputRef& edge) {
          return has_operator(step) ? expected_at(live_.nodes, edge, live_.nodes[position], writer_) : none();
        });
      case OperationKind::kAddToBuffer: {
        const Owned input = input_ref_to_python(plan.next_edges_of(step)[operation.operand]);
        return checked(Py_BuildValue("(IO)", operation.operand, input.get()));
      }
      default:
        return none();
    }
  }

  const LiveLowering& live_;
  ValueWriter& writer_;
};

// Values as they are: tensors of the live graph, sizes and numbers; ("unpacked", i) for a saved tensor that is unpacked
// when its step runs.
class TraceWriter final : public ValueWriter {
 public:
  TraceWriter(const LiveLowering& live, bool call_unpack_hooks) : live_(live), call_unpack_hooks_(call_unpack_hooks) {}

  Owned write(ElementKind kind, const c10::IValue& value) override {
    if (kind == ElementKind::kTensor && value.toTensor().is_same(PackWriter::unpacked_later()))
      return checked(Py_BuildValue("(si)", "unpacked", unpacked_++));
    return ElementWriter::write(kind, value);
  }
  Owned size(const c10::SymInt& value) override { return sym_int_to_python(value); }
  Owned leaf(const at::Tensor& leaf) override { return tensor_to_python(leaf); }
  // Of every step, because it costs little.
  Owned live(size_t step) override {
    return live_node_to_python(
        {live_.nodes[step]->getptr(), live_.plan.steps[step].binding, static_cast<uint32_t>(step), nullptr});
  }
  bool calls_unpack_hooks() const override { return call_unpack_hooks_; }
  void begin_step() override { unpacked_ = 0; }

 private:
  const LiveLowering& live_;
  const bool call_unpack_hooks_;
  int unpacked_ = 0;
};

}  // namespace

Owned input_ref_to_python(const InputRef& input) {
  if (!input.is_followed()) return none();
  return checked(Py_BuildValue("(II)", input.step, input.input_nr));
}

Owned steps_to_python(const LiveLowering& live, ValueWriter& writer) {
  Records records(live, writer);
  return list_of(std::views::iota(size_t{0}, live.nodes.size()), [&](size_t i) { return records.step(i); });
}

PyObject* lower(PyObject* /*module*/, PyObject* const* arguments, Py_ssize_t count) {
  return guarded([&] {
    TORCH_CHECK_TYPE(count == 3, "lower() takes outputs, inputs and call_unpack_hooks, got ", count, " arguments");
    // The edges keep the nodes alive: nothing else does so for the AccumulateGrad of a leaf that is an output.
    const edge_list root_edges = edges_of(arguments[0], "outputs");
    const edge_list inputs = edges_of(arguments[1], "inputs");
    {
      // Code that the graph will call may ask which node it is called for.
      const GilReleased released;
      torch_private::find_current_node();
    }
    const Walk walked = walk(root_edges, inputs);
    const Lowering lowering(walked.plan);
    const LiveLowering live{walked.plan, lowering, walked.nodes};
    TraceWriter writer(live, arguments[2] == Py_True);
    const Owned roots = list_of(walked.plan.roots, [&](const InputRef& root) {
      const Owned input = input_ref_to_python(root);
      const Owned expected = expected_at(walked.nodes, root, /*source=*/nullptr, writer);
      return checked(Py_BuildValue("(OO)", input.get(), expected.get()));
    });
    const Owned steps = steps_to_python(live, writer);
    return checked(Py_BuildValue("(OO)", roots.get(), steps.get())).release();
  });
}

PyObject* leaves_of(PyObject* /*module*/, PyObject* outputs) {
  return guarded([&] {
    const edge_list edges = leaf_edges(edges_of(outputs, "outputs"));
    return list_of(edges,
                   [](const torch::autograd::Edge& edge) {
                     return tensor_to_python(static_cast<torch::autograd::AccumulateGrad&>(*edge.function).variable);
                   })
        .release();
  });
}

}  // namespace backbind::python
