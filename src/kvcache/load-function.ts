import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * A function that an operator's own ES module exports under `name`.
 * @throws Error when there is no such module, or it exports no such function.
 */
export const loadFunction = async (modulePath: string, name: string): Promise<(...parts: unknown[]) => unknown> => {
  const loaded: unknown = await import(pathToFileURL(resolve(modulePath)).href)
  const exported = memberOf(loaded, name)
  if (isFunction(exported)) return exported
  throw new Error(`${modulePath} does not export a function ${name}`)
}

/** Undefined: `object` is none, or has no such member. */
export const memberOf = (object: unknown, name: string): unknown =>
  typeof object === 'object' && object !== null ? Reflect.get(object, name) : undefined

const isFunction = (value: unknown): value is (...parts: unknown[]) => unknown => typeof value === 'function'
