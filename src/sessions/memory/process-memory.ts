import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { membersOf } from '../../json/members-of.ts'

/** Memory use against its limit. */
export interface MemoryReading {
  readonly usedBytes: number
  readonly limitBytes: number
}

/** Reports memory use, at once and after changes, until the returned function is called. */
export type MemoryWatch = (onReading: (reading: MemoryReading) => void) => () => void

/**
 * Reads this process's memory after every full garbage collection: before one, garbage counts as used. V8 makes one
 * long before its heap is full. Reports the tighter limit: the heap's, or the container's for the whole process.
 */
export const watchProcessMemory: MemoryWatch = (onReading) => {
  onReading(readMemory())
  const observer = new PerformanceObserver((list) => {
    if (list.getEntries().some(isFullCollection)) onReading(readMemory())
  })
  observer.observe({ entryTypes: ['gc'] })
  return () => observer.disconnect()
}

const isFullCollection = ({ detail }: PerformanceEntry & { readonly detail?: unknown }): boolean =>
  membersOf(detail)['kind'] === constants.NODE_PERFORMANCE_GC_MAJOR

const readMemory = (): MemoryReading => {
  const { used_heap_size: usedBytes, heap_size_limit: limitBytes } = getHeapStatistics()
  const heap = { usedBytes, limitBytes }
  const containerBytes = process.constrainedMemory()
  // 0, or more than any machine has: there is no limit.
  if (containerBytes <= 0 || containerBytes > Number.MAX_SAFE_INTEGER) return heap
  // A container's limit counts resident memory: that of native code, stacks and fragmented pages, too.
  const container = { usedBytes: process.memoryUsage.rss(), limitBytes: containerBytes }
  return shareOf(container) > shareOf(heap) ? container : heap
}

const shareOf = ({ usedBytes, limitBytes }: MemoryReading): number => usedBytes / limitBytes
