import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Heap and buffers of this process after a collection. */
export const usedBytes = (): number => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  collectGarbage()
  const { used_heap_size: heapBytes, external_memory: bufferBytes } = getHeapStatistics()
  return heapBytes + bufferBytes
}
