import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './collect-garbage.ts'

/** Heap and buffers of this process after a collection. */
export const usedBytes = (): number => {
  collectGarbage()
  const { used_heap_size: heapBytes, external_memory: bufferBytes } = getHeapStatistics()
  return heapBytes + bufferBytes
}
