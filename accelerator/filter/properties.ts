// What Envoy keeps of a request for this filter, and for the access log.

import { proxy_get_property, proxy_set_property } from './env'
import { result, writeText } from './scratch'

const name: usize = memory.data(16)

/** Reads a property of the request whose context is in effect: `result` says where it is then. False when it has none. */
export function getProperty(property: string): bool {
  return proxy_get_property(name, writeText(property, name), result, result + 4) === 0
}

export function setProperty(property: string, value: usize, length: usize): void {
  proxy_set_property(name, writeText(property, name), value, <i32>length)
}
