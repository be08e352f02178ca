import { parseFlags } from '../../commandline/parse-flags.ts'
import { loadConfig } from '../../config/load-config.ts'
import { adminAddress, adminFlags } from '../admin-address.ts'
import { isHttpUrl } from '../ask.ts'
import type { Command } from '../command.ts'
import { invalidText } from '../config.ts'
import { allChecks } from './checks/all-checks.ts'
import { diagnose, renderDiagnosis } from './finding.ts'
import { gatherFacts } from './gather.ts'

const flags = {
  admin: adminFlags.admin,
  json: { type: 'boolean', default: false },
  envoy: { type: 'string' },
  url: { type: 'string' },
  config: { type: 'string' },
} as const

/** `doctor`: looks at an Envoy, a gateway, its Redis and its engines, and names what is wrong with its fix. */
export const doctorCommand: Command = async ({ args, env, print, fail, failUsage }) => {
  const parsed = parseFlags(args, flags)
  if (parsed.kind === 'invalid') return failUsage(parsed.message)
  const { json, envoy, url, config: filePath } = parsed.values
  const admin = adminAddress(parsed.values, env)
  const isAdminGiven = parsed.values.admin !== undefined
  for (const [flag, value] of Object.entries({ admin, envoy, url }))
    if (value !== undefined && !isHttpUrl(value)) return failUsage(`--${flag} ${value}: must be http://host:port`)
  const loaded = loadConfig({ filePath, environment: env })
  // Variables alone may be those of another program.
  if (filePath !== undefined && loaded.kind === 'invalid') return fail(invalidText([loaded.problems]))
  const config = loaded.kind === 'loaded' ? loaded.config : undefined
  const diagnosis = diagnose(allChecks, await gatherFacts({ admin, isAdminGiven, envoy, url, config }))
  print(json ? JSON.stringify(diagnosis, null, 2) : renderDiagnosis(diagnosis))
  return diagnosis.findings.length === 0 ? 0 : 1
}
