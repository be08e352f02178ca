// Short texts that outlive a call by Envoy, in blocks of one size; the one that was given back last is taken first, since the processor still has
// it at hand. Reading a property of Envoy's instead costs as much as everything else that is done with an answer's headers.

const blockBytes: u32 = 256
const blocks: u32 = 8192
const memoryOfBlocks: usize = memory.data(2_097_152)
const lengthBytes: usize = 4
/** Longer texts are not kept here. */
export const longestText: usize = 252

/** Blocks count from 1; those never used come after this one. */
let used: u32 = 0
let free: u32 = 0

/** A free block; 0 when there is none. */
export function takeBlock(): u32 {
  if (free !== 0) {
    const block = free
    free = load<u32>(at(block))
    return block
  }
  if (used === blocks) return 0
  used += 1
  return used
}

/** Gives a block back; 0 is none. */
export function drop(block: u32): void {
  if (block === 0) return
  store<u32>(at(block), free)
  free = block
}

/** Puts a text of no more than `longestText` bytes into a block, in place of what is there. The two may overlap. */
export function write(block: u32, text: usize, length: usize): void {
  memory.copy(textAt(block), text, length)
  store<u32>(at(block), <u32>length)
}

export function textAt(block: u32): usize {
  return at(block) + lengthBytes
}

export function lengthOf(block: u32): usize {
  return <usize>load<u32>(at(block))
}

function at(block: u32): usize {
  return memoryOfBlocks + <usize>((block - 1) * blockBytes)
}
