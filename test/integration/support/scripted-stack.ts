import { afterAll, beforeAll } from '@jest/globals'
import { type ScriptedPod, startScriptedPod } from './scripted-pod.ts'
import { type Stack, type StackOptions, startStack } from './stack.ts'

/** A stack with one pod that answers as it is told, for as long as a suite runs; there from its first test on. */
export interface ScriptedStack {
  readonly pod: ScriptedPod
  readonly stack: Stack
}

/** To be called once, at the top of a suite: starts the stack before its tests and ends it behind them. */
export const useScriptedStack = (options: Pick<StackOptions, 'envoyConfig'> = {}): ScriptedStack => {
  let pod: ScriptedPod | undefined
  let stack: Stack | undefined
  beforeAll(async () => {
    const started = await startScriptedPod()
    pod = started
    stack = await startStack({ ...options, pods: async () => [started], env: { CONNECTOR: 'none' } })
  }, 120_000)
  afterAll(async () => {
    await stack?.stop()
    await pod?.stop()
  }, 30_000)
  return {
    get pod() {
      if (pod === undefined) throw new Error('the pod has not been started')
      return pod
    },
    get stack() {
      if (stack === undefined) throw new Error('the stack has not been started')
      return stack
    },
  }
}
