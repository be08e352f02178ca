// Headers by their names.

import { proxy_remove_header_map_value, proxy_replace_header_map_value, requestHeaders, responseHeaders } from './env'
import { writeText } from './scratch'

const name: usize = memory.data(32)

/** Sets a header of the request whose context is in effect. */
export function setRequestHeader(header: string, value: usize, length: i32): void {
  proxy_replace_header_map_value(requestHeaders, name, writeText(header, name), value, length)
}

/** Takes a header off the answer to that request. */
export function removeResponseHeader(header: string): void {
  proxy_remove_header_map_value(responseHeaders, name, writeText(header, name))
}
