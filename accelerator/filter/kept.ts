// The one text that is kept for a turn between two of Envoy's calls: what its answer gets, then the end of its stream's last piece. A long one, or one
// more than there are blocks, lies with Envoy.

import * as texts from './kept-texts'
import { getProperty, setProperty } from './properties'
import { result } from './scratch'
import { blockOf, setBlock } from './turns'

/** Keeps a text for the turn whose context is in effect, in place of an earlier one. */
export function keepText(entry: usize, text: usize, length: i32): void {
  let block = blockOf(entry)
  if (<usize>length <= texts.longestText && block === 0) block = texts.takeBlock()
  if (<usize>length <= texts.longestText && block !== 0) texts.write(block, text, length)
  else {
    setProperty('kept', text, length)
    texts.drop(block)
    block = 0
  }
  setBlock(entry, block)
}

/** Finds it again: `result` says where it is then. False when there is none. */
export function findKept(entry: usize): bool {
  const block = blockOf(entry)
  if (block === 0) return getProperty('kept')
  store<u32>(result, <u32>texts.textAt(block))
  store<u32>(result, <u32>texts.lengthOf(block), 4)
  return true
}
