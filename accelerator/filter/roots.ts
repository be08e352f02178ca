// The contexts of this filter's configurations that are there in this worker. What the filter opens belongs to one of them, and goes with it.

/** More are not kept in mind; those that came first are forgotten. */
const most: u32 = 16
const idBytes: usize = 4
const ids: usize = memory.data(64)
let count: u32 = 0

/** A configuration is there, from now on the newest one. */
export function addRoot(id: u32): void {
  removeRoot(id)
  if (count === most) removeRoot(load<u32>(ids))
  store<u32>(at(count), id)
  count += 1
}

/** A context is gone, which may be no configuration's. */
export function removeRoot(id: u32): void {
  for (let place: u32 = 0; place < count; place++) {
    if (load<u32>(at(place)) !== id) continue
    count -= 1
    memory.copy(at(place), at(place + 1), <usize>(count - place) * idBytes)
    return
  }
}

/** The context of the newest configuration; 0 when there is none. */
export function newestRoot(): u32 {
  return count === 0 ? 0 : load<u32>(at(count - 1))
}

function at(place: u32): usize {
  return ids + <usize>place * idBytes
}
