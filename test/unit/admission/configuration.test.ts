import { readFileSync } from 'node:fs'
import { describe, expect, test } from '@jest/globals'
import { load, problemsOf } from '../config/load.ts'

type Environment = Readonly<Record<string, string>>

const essential = { PODS: '10.0.0.11:8000,10.0.0.12:8000,10.0.0.13:8000', KV_DIR: '/mnt/kv' }

const prefixed = (admission: Environment): Environment =>
  Object.fromEntries(
    Object.entries(admission).map(([name, value]) => [name.replace(/^(?!CTX_)/, 'CTX_ADMISSION_'), value]),
  )

describe('the configuration', () => {
  test('requires nothing by default', () => {
    expect(load(essential).admission).toEqual({
      requirements: [],
      resources: [],
      globalResources: [],
      priorities: [],
      objectives: [],
      defaultPriority: 1,
      maxWaiting: 1000,
      maxWaitMs: 5000,
      messageTimeoutMs: 120_000,
    })
  })

  test('takes lists from the environment', () => {
    const { admission } = load({
      ...essential,
      PODS: '10.0.0.11:8000,[FD00::12]:8000',
      CTX_ADMISSION_REQUIREMENTS: 'prefill/A=R1:4 R2:4, prefill/B=R2:5 R3:10 R4:5',
      CTX_ADMISSION_RESOURCES: 'R1:10,R2:5:0,R2:8:[FD00:0::12]:8000',
      CTX_ADMISSION_GLOBAL_RESOURCES: 'R3',
      CTX_ADMISSION_PRIORITIES: 'A=1,B=2',
    })
    expect(admission).toMatchObject({
      requirements: ['prefill/A=R1:4 R2:4', 'prefill/B=R2:5 R3:10 R4:5'],
      resources: ['R1:10', 'R2:5:0', 'R2:8:[fd00::12]:8000'],
      globalResources: ['R3'],
      priorities: ['A=1', 'B=2'],
      objectives: [],
    })
  })

  const tooLong = 'must not exceed admission.messageTimeoutMs'
  const requirement = { REQUIREMENTS: 'prefill=R1:1' }
  const noAdmission = { CTX_KV_LOAD_BUDGET_MS: '60000', MESSAGE_TIMEOUT_MS: '60000' }
  const tooFew = 'prefill/A needs 4 of R1, and there may be only 3'
  test.each<[string, Environment, ...(readonly string[])]>([
    ['a malformed requirement', { REQUIREMENTS: 'A=R1:4' }, 'must be like prefill=R1:4 R2:1', 'admission.requirements'],
    ['a malformed count', { RESOURCES: 'R1=4' }, 'must be like R1:10', 'admission.resources'],
    ['a malformed priority', { PRIORITIES: 'A:1' }, 'must be like my-model=2', 'admission.priorities'],
    ['a malformed name', { GLOBAL_RESOURCES: 'R:1' }, 'must begin with a letter', 'admission.globalResources'],
    ['an unmet requirement', { REQUIREMENTS: 'prefill/A=R1:4', RESOURCES: 'R1:3' }, tooFew, 'CTX_ADMISSION_RESOURCES'],
    ['waits beyond the message timeout', { ...requirement, MAX_WAIT_MS: '89001' }, tooLong, 'MAX_WAIT_MS'],
    ['loads beyond the message timeout', noAdmission, `60000) and 1000 ms together ${tooLong}`, 'KV_LOAD_BUDGET_MS'],
    ['a pod by name', { ...requirement, RESOURCES: 'R1:4:pod-0:80' }, 'name pods by IP address', 'ADMISSION_RESOURCES'],
  ])('refuses %s, and says what to do', (_title, admission, ...says) => {
    const problems = problemsOf({ ...essential, ...prefixed(admission) })
    expect(says.filter((text) => !problems.includes(text))).toEqual([])
  })

  test('refuses requirements of loads that the engine decides on', () => {
    const problems = problemsOf({ ...essential, CTX_ADMISSION_REQUIREMENTS: 'load/A=R1:1', CONNECTOR: 'none' })
    expect(problems).toContain('only with the connector llamacpp-slots')
    expect(problems).toContain('admission.requirements')
  })

  test.each<[string, Environment]>([
    ['waits and loads as long as the message timeout', { ...requirement, MAX_WAIT_MS: '89000' }],
    ['long waits with a long message timeout', { ...requirement, MAX_WAIT_MS: '120000', MESSAGE_TIMEOUT_MS: '151000' }],
    ['any wait without requirements', { MAX_WAIT_MS: '600000', CTX_KV_LOAD_BUDGET_MS: '60000' }],
  ])('accepts %s', (_title, admission) => {
    expect(problemsOf({ ...essential, ...prefixed(admission) })).toBe('none')
  })

  test('knows the max_message_timeout of envoy.yaml', () => {
    const envoy = readFileSync(new URL('../../../envoy.yaml', import.meta.url), 'utf8')
    const [, seconds] = /max_message_timeout: (\d+)s/.exec(envoy) ?? []
    expect(load(essential).admission.messageTimeoutMs).toBe(Number(seconds) * 1000)
  })
})
