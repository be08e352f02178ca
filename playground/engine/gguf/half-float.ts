// IEEE 754 binary16, the type of the generated weights.

const singleView = new DataView(new ArrayBuffer(4))

/** Bits of the binary16 number nearest to `value` (ties to even); magnitudes beyond its range become infinity. */
export function halfFloatBits(value: number): number {
  singleView.setFloat32(0, value)
  const bits = singleView.getUint32(0)
  const sign = (bits >>> 16) & 0x8000
  const exponent = ((bits >>> 23) & 0xff) - 127 + 15
  const mantissa = bits & 0x7fffff
  if (exponent >= 31) return sign | 0x7c00
  if (exponent <= 0) {
    if (exponent < -10) return sign
    return sign | roundedShift(mantissa | 0x800000, 14 - exponent)
  }
  // A carry out of the mantissa runs into the exponent, which is just what rounding up to the next power of two needs.
  return sign | ((exponent << 10) + roundedShift(mantissa, 13))
}

function roundedShift(value: number, shift: number): number {
  const kept = value >>> shift
  const rest = value & ((1 << shift) - 1)
  const half = 1 << (shift - 1)
  return rest > half || (rest === half && kept % 2 === 1) ? kept + 1 : kept
}
