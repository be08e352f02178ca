import { createRequire } from 'node:module'

/** The optional package zeromq, a native library of 34 MB for KV events. @throws Error that says how to install it */
export const loadZeromq = (
  load: (name: string) => unknown = createRequire(import.meta.url),
): typeof import('zeromq') => {
  try {
    return load('zeromq') as typeof import('zeromq')
  } catch (cause) {
    throw new Error('KV events need the optional package zeromq, which cannot be loaded: npm install zeromq', { cause })
  }
}
