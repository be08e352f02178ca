import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

/** How much of what the process may take is taken. */
export interface MemoryReading {
  readonly usedBytes: number
  readonly limitBytes: number
  /** Whether what lies outside of the heap counts. Default: no. */
  readonly includesExternal?: boolean
}

/** Tells how much memory is taken, now and whenever that is known anew. */
export interface MemoryWatch {
  start(onReading: (reading: MemoryReading) => void): void
  stop(): void
}

/**
 * Reads the memory of this process after every full garbage collection: only then it tells what is needed, and not what merely has not been
 * collected. V8 makes one long before its heap is full. What counts is the tighter of two limits: that of the heap, and that of the
 * container (cgroup), for the heap with what lies outside of it.
 */
export const createProcessMemoryWatch = (): MemoryWatch => {
  let observer: PerformanceObserver | undefined
  return {
    start: (onReading) => {
      onReading(readMemory())
      observer = new PerformanceObserver((list) => {
        if (list.getEntries().some(isFullCollection)) onReading(readMemory())
      })
      observer.observe({ entryTypes: ['gc'] })
    },
    stop: () => observer?.disconnect(),
  }
}

const isFullCollection = (entry: PerformanceEntry & { readonly detail?: unknown }): boolean => {
  const { detail } = entry
  const isObject = typeof detail === 'object' && detail !== null
  return isObject && 'kind' in detail && detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR
}

const readMemory = (): MemoryReading => {
  const { used_heap_size: usedBytes, external_memory: externalBytes, heap_size_limit: limitBytes } = getHeapStatistics()
  const heap = { usedBytes, limitBytes }
  const containerBytes = process.constrainedMemory()
  // 0, or more than any machine has: there is no limit.
  if (containerBytes <= 0 || containerBytes > Number.MAX_SAFE_INTEGER) return heap
  const container = { usedBytes: usedBytes + externalBytes, limitBytes: containerBytes, includesExternal: true }
  return shareOf(container) > shareOf(heap) ? container : heap
}

const shareOf = ({ usedBytes, limitBytes }: MemoryReading): number => usedBytes / limitBytes
