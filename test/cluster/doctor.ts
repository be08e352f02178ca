import { expect } from '@jest/globals'
import { z } from 'zod'
import { shell } from './rig/follow-page.ts'
import { gateways } from './under-load.ts'
import type { Bed } from './way.ts'

const report = z.object({
  findings: z.array(z.object({ check: z.string(), severity: z.string(), problem: z.string() })),
  passed: z.array(z.string()),
})

/**
 * What `doctor` says of one of the Envoys that a label selects: asked in its pod, where its admin port is. Beside it
 * doctor looks at a gateway, and at the way from outside.
 */
export const examine = async (
  { rig, url }: Bed,
  { envoys, adminPort }: EnvoyPods,
): Promise<z.output<typeof report>> => {
  const addressOf = (label: string): Promise<string> =>
    rig.kubectl('get', 'pods', '-l', label, '-o', 'jsonpath={.items[0].status.podIP}')
  const [envoy, gateway] = await Promise.all([addressOf(envoys), addressOf(gateways)])
  const places = `--envoy http://127.0.0.1:${adminPort} --admin http://${gateway}:9090 --url ${url}`
  const doctor = [...rig.network.prefixOf(envoy), process.execPath, 'dist/src/main.js', 'doctor', '--json', places]
  // 1: it has found something.
  const found = report.parse(JSON.parse(await shell(rig, `${doctor.join(' ')} || [ $? -eq 1 ]`)))
  expect(found.passed).toEqual(expect.arrayContaining(['gateway', 'ext-proc', 'destinations', 'pods-in-envoy']))
  return found
}

/** Pods of Envoys, and their admin port. */
export interface EnvoyPods {
  readonly envoys: string
  readonly adminPort: number
}
