import type { Facts } from '../../src/commands/doctor/facts.ts'
import { unknown } from '../../src/commands/doctor/known.ts'
import { defaultSettings } from '../../src/commands/doctor/settings.ts'

const nothing = unknown('it was not asked')

/** What doctor knows before it has asked anything. */
export const unaskedFacts: Facts = {
  settings: defaultSettings(),
  silent: [],
  gateway: nothing,
  envoy: nothing,
  outside: nothing,
  redis: nothing,
  fullCoverage: nothing,
  engines: nothing,
  clocks: [],
  lua: { contextCache: '', sessionNames: '', read: () => undefined },
}
