// The contexts of this filter in Envoy's listeners, one for each configuration that a worker has. Streams belong to one
// of them, and end with it.

/** Of more than these the oldest are forgotten. */
const maxRoots: u32 = 16
const idBytes: usize = 4
const ids: usize = memory.data(64)
let count: u32 = 0

/** A listener with this filter was added; its context becomes the newest one. */
export function addRoot(id: u32): void {
  removeRoot(id)
  if (count === maxRoots) removeRoot(load<u32>(ids))
  store<u32>(at(count), id)
  count += 1
}

/** A context is gone. It may be that of a request. */
export function removeRoot(id: u32): void {
  for (let place: u32 = 0; place < count; place++) {
    if (load<u32>(at(place)) !== id) continue
    count -= 1
    memory.copy(at(place), at(place + 1), <usize>(count - place) * idBytes)
    return
  }
}

/** The context of the newest listener; 0 when there is none. */
export function newestRoot(): u32 {
  return count === 0 ? 0 : load<u32>(at(count - 1))
}

function at(place: u32): usize {
  return ids + <usize>place * idBytes
}
