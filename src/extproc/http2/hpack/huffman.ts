/**
 * HPACK's Huffman code (RFC 7541, appendix B) is canonical, so that the lengths of its codes say all: symbols in order, the
 * last one marks the end of a string and is never sent.
 */
const codeLengths: readonly number[] = Object.freeze([
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
])

const endOfString = 256

/** The shortest code has five bits. */
const maxExpansion = 8 / 5

/**
 * The code as a binary tree: two numbers for each inner node, one for each bit. A positive number is the next node's place;
 * one below zero is a symbol's complement.
 */
const buildTree = (): Int16Array => {
  const tree = new Int16Array(2 * codeLengths.length)
  const symbols = codeLengths.map((length, symbol) => ({ length, symbol }))
  symbols.sort((one, other) => one.length - other.length || one.symbol - other.symbol)
  let nextNode = 2
  let code = 0
  let previous = 0
  for (const { length, symbol } of symbols) {
    code <<= length - previous
    previous = length
    let at = 0
    for (let bit = length - 1; bit > 0; bit--) {
      const place = at + ((code >>> bit) & 1)
      if (tree[place] === 0) {
        tree[place] = nextNode
        nextNode += 2
      }
      at = tree[place] ?? 0
    }
    tree[at + (code & 1)] = ~symbol
    code++
  }
  return tree
}

const tree = buildTree()

/** The text of a Huffman-coded string, as latin1; undefined when it is none. */
export const decodeHuffman = (bytes: Buffer, start: number, end: number): string | undefined => {
  const text = Buffer.allocUnsafe(Math.floor((end - start) * maxExpansion))
  let length = 0
  let at = 0
  let openBits = 0
  let openOnes = true
  for (let index = start; index < end; index++) {
    const byte = bytes[index] ?? 0
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >>> shift) & 1
      at = tree[at + bit] ?? 0
      openBits++
      if (bit === 0) openOnes = false
      if (at >= 0) continue
      const symbol = ~at
      if (symbol === endOfString) return undefined
      text[length++] = symbol
      at = 0
      openBits = 0
      openOnes = true
    }
  }
  return openBits > 7 || !openOnes ? undefined : text.toString('latin1', 0, length)
}
