#include "worker_sdk/collectives/process_group.h"

namespace muster {

size_t SizeOf(DataType type) {
  switch (type) {
    case DataType::kU8:
      return 1;
    case DataType::kI32:
    case DataType::kF32:
      return 4;
    case DataType::kI64:
    case DataType::kF64:
      return 8;
  }
  return 1;
}

const char* DataTypeName(DataType type) {
  switch (type) {
    case DataType::kU8:
      return "u8";
    case DataType::kI32:
      return "i32";
    case DataType::kI64:
      return "i64";
    case DataType::kF32:
      return "f32";
    case DataType::kF64:
      return "f64";
  }
  return "unknown type";
}

const char* ReduceOpName(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProd:
      return "prod";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kAvg:
      return "avg";
  }
  return "unknown operation";
}

}  // namespace muster
