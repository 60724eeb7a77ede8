"""ONNX's messages: the number, name and kind of each field that is read or written.

A kind is int, float, double, text, bytes or the name of a message; a `*` behind it: any number of them. What
a model says of devices, sharding and documentation is not here: it changes nothing that is computed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ABSENT", "MESSAGES", "Field"]


class Field(NamedTuple):
    """One row: a field of a message."""

    number: int
    name: str
    kind: str
    repeated: bool


_TABLE = """
Model: 1 ir_version int, 8 opset_import OperatorSet*, 2 producer_name text, 3 producer_version text,
  4 domain text, 5 model_version int, 6 doc_string text, 7 graph Graph, 14 metadata_props Entry*,
  20 training_info TrainingInfo*, 25 functions Function*
OperatorSet: 1 domain text, 2 version int
Graph: 1 node Node*, 2 name text, 5 initializer Tensor*, 15 sparse_initializer SparseTensor*,
  10 doc_string text, 11 input ValueInfo*, 12 output ValueInfo*, 13 value_info ValueInfo*,
  14 quantization_annotation Annotation*
Node: 1 input text*, 2 output text*, 3 name text, 4 op_type text, 7 domain text, 8 overload text,
  5 attribute Attribute*
Attribute: 1 name text, 21 ref_attr_name text, 20 type int, 2 f float, 3 i int, 4 s bytes, 5 t Tensor,
  6 g Graph, 22 sparse_tensor SparseTensor, 14 tp Type, 7 floats float*, 8 ints int*, 9 strings bytes*,
  10 tensors Tensor*, 11 graphs Graph*, 23 sparse_tensors SparseTensor*, 15 type_protos Type*
Tensor: 1 dims int*, 2 data_type int, 4 float_data float*, 5 int32_data int*, 6 string_data bytes*,
  7 int64_data int*, 8 name text, 9 raw_data bytes, 13 external_data Entry*, 14 data_location int,
  10 double_data double*, 11 uint64_data int*
SparseTensor: 1 values Tensor, 2 indices Tensor, 3 dims int*
Entry: 1 key text, 2 value text
Annotation: 1 tensor_name text, 2 quant_parameter_tensor_names Entry*
Type: 1 tensor_type TensorType, 4 sequence_type ElementType, 5 map_type MapType, 9 optional_type ElementType,
  8 sparse_tensor_type TensorType, 6 denotation text
TensorType: 1 elem_type int, 2 shape Shape
ElementType: 1 elem_type Type
MapType: 1 key_type int, 2 value_type Type
Shape: 1 dim Dimension*
Dimension: 1 dim_value int, 2 dim_param text, 3 denotation text
ValueInfo: 1 name text, 2 type Type, 3 doc_string text
TrainingInfo: 1 initialization Graph, 2 algorithm Graph, 3 initialization_binding Entry*,
  4 update_binding Entry*
Function: 1 name text, 4 input text*, 5 output text*, 6 attribute text*, 11 attribute_proto Attribute*,
  7 node Node*, 8 doc_string text, 9 opset_import OperatorSet*, 10 domain text, 13 overload text
Sequence: 1 name text, 2 elem_type int, 3 tensor_values Tensor*, 4 sparse_tensor_values SparseTensor*,
  5 sequence_values Sequence*
Optional: 1 name text, 2 elem_type int, 3 tensor_value Tensor, 4 sparse_tensor_value SparseTensor,
  5 sequence_value Sequence, 7 optional_value Optional
"""
_NOTHING = {"int": 0, "float": 0.0, "double": 0.0, "text": "", "bytes": b""}


def _fields(rows: str) -> dict[int, Field]:
    split = [each.split() for each in rows.split(",")]
    return {
        int(number): Field(int(number), name, kind.rstrip("*"), "*" in kind) for number, name, kind in split
    }


# message → number → field
MESSAGES: dict[str, dict[int, Field]] = {
    name: _fields(rows)
    for name, rows in (each.split(":") for each in _TABLE.replace("\n  ", " ").strip().splitlines())
}
# message → field → its value where it is absent
ABSENT: dict[str, dict[str, Any]] = {
    name: {each.name: () if each.repeated else _NOTHING.get(each.kind) for each in fields.values()}
    for name, fields in MESSAGES.items()
}
