import { expect, test } from '@jest/globals'
import { createEngineChecks } from '../../../src/app/engine-checks.ts'
import type { EngineFinding } from '../../../src/kvcache/kv-connector.ts'
import { createWarnings } from '../../../src/telemetry/warnings.ts'
import { eventually } from '../../support/eventually.ts'
import { createStaticPods } from '../../support/static-pods.ts'

const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined }

/** Checks of two pods whose engines find what the test says. */
const createBench = () => {
  const findings = new Map<string, readonly EngineFinding[] | Error>()
  const addresses = ['a:1', 'b:1']
  const pods = createStaticPods(addresses)
  const warnings = createWarnings(silent)
  const kv = {
    check: async (pod: string) => {
      const found = findings.get(pod) ?? []
      if (found instanceof Error) throw found
      return found
    },
  }
  const checks = createEngineChecks({ kv, pods, warnings, log: silent })
  return {
    checks,
    pods,
    removeAllPods: () => addresses.splice(0),
    finds: (pod: string) => findings.set(pod, [{ kind: 'engine_shares_kv', text: `${pod} shares` }]),
    findsNothing: (pod: string) => findings.delete(pod),
    fails: (pod: string) => findings.set(pod, new Error('no slot is idle')),
    listed: () => warnings.list().map(({ text }) => text),
  }
}

test('each ready pod is checked at the start, and one that becomes ready is checked then', async () => {
  const bench = createBench()
  bench.finds('a:1')
  bench.finds('b:1')
  bench.pods.setReady('b:1', false)
  await bench.checks.start()
  expect(bench.listed()).toEqual(['a:1 shares'])

  bench.checks.podChanged({ kind: 'ready', address: 'b:1' })
  await eventually(() => expect(bench.listed()).toEqual(['a:1 shares', 'b:1 shares']))
})

test('a finding holds until a later check finds nothing', async () => {
  const bench = createBench()
  bench.finds('a:1')
  bench.finds('b:1')
  await bench.checks.start()

  bench.findsNothing('a:1')
  bench.checks.podChanged({ kind: 'ready', address: 'a:1' })
  await eventually(() => expect(bench.listed()).toEqual(['b:1 shares']))
})

test('a check of a pod that goes meanwhile changes nothing', async () => {
  const bench = createBench()
  bench.finds('a:1')
  const started = bench.checks.start()
  bench.removeAllPods()
  await started
  expect(bench.listed()).toEqual([])
})

test('a check that fails changes nothing', async () => {
  const bench = createBench()
  bench.finds('a:1')
  await bench.checks.start()

  bench.fails('a:1')
  await bench.checks.start()

  expect(bench.listed()).toEqual(['a:1 shares'])
})
