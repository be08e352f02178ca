import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { untilAborted, withinLimit } from '../async/deadline.ts'
import { membersOf } from '../json/members-of.ts'

/** What an operator's ES module exports as `name`; undefined: nothing. @throws Error when there is no such module. */
export const loadMember = async (modulePath: string, name: string): Promise<unknown> =>
  membersOf(await import(pathToFileURL(resolve(modulePath)).href))[name]

/** The same of a function. @throws Error also when it exports no such function. */
export const loadFunction = async (modulePath: string, name: string): Promise<(...parts: unknown[]) => unknown> => {
  const exported = await loadMember(modulePath, name)
  if (isFunction(exported)) return exported
  throw new Error(`${modulePath} does not export a function ${name}`)
}

/** What a function of such a module creates. @throws Error when that takes longer than `limitMs`, default 10 s */
export const created = (what: string, work: unknown, limitMs = 10_000): Promise<unknown> => {
  const onAbort = (): never => {
    throw new Error(`${what} does not settle within ${limitMs} ms: let it return at once, and wait in the methods`)
  }
  return withinLimit(limitMs, (signal) => untilAborted(Promise.resolve(work), signal, onAbort))
}

export const isFunction = (value: unknown): value is (...parts: unknown[]) => unknown => typeof value === 'function'
