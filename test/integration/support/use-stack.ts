import { afterAll, beforeAll } from '@jest/globals'
import { createScriptedPod, type ScriptedPod } from './scripted-pod.ts'
import { type Stack, type StackOptions, startStack } from './stack.ts'

/** An object whose members are those of `current`, once there is one. */
const forwardTo = <T extends object>(current: () => T | undefined): T =>
  new Proxy({} as T, {
    get: (_target, name) => {
      const object = current()
      if (object === undefined) throw new Error('the stack is not started yet')
      return Reflect.get(object, name)
    },
  })

/** A stack that starts before a suite's first test and stops after its last one. `prepare` runs after the start. */
export const useStack = (
  options: StackOptions | (() => Promise<StackOptions>) = {},
  prepare: (stack: Stack) => unknown = () => undefined,
): Stack => {
  let stack: Stack | undefined
  beforeAll(async () => {
    stack = await startStack(typeof options === 'function' ? await options() : options)
    await prepare(stack)
  })
  afterAll(() => stack?.stop())
  return forwardTo(() => stack)
}

/** A stack whose pods do what the test says. */
export interface ScriptedStack {
  readonly stack: Stack
  /** The first pod, or the only one. */
  readonly pod: ScriptedPod
  readonly pods: readonly ScriptedPod[]
}

/** As {@link useStack}, with scripted pods, of which the gateway stores no KV. */
export const useScriptedStack = (
  options: Omit<StackOptions, 'pods'> & {
    /** Default: 1. */
    readonly podCount?: number
  } = {},
): ScriptedStack => {
  const pod = createScriptedPod()
  const pods = [pod, ...Array.from({ length: (options.podCount ?? 1) - 1 }, () => createScriptedPod())]
  const stack = useStack({
    ...options,
    pods: async () => {
      await Promise.all(pods.map((one) => one.start()))
      return pods
    },
    env: { CONNECTOR: 'none', ...options.env },
  })
  return { stack, pod, pods }
}
