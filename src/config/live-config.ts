import type { Config } from './config.ts'

/** The configuration that holds now. A reload replaces it as a whole; read what belongs together at once. */
export interface LiveConfig {
  readonly current: Config
}

/** An object whose members are always those that `read` returns now. For parts that take their settings once. */
export const liveView = <Settings extends object>(read: () => Settings): Settings => {
  const view: Partial<Settings> = {}
  for (const name of Object.keys(read()))
    Object.defineProperty(view, name, { enumerable: true, get: () => Reflect.get(read(), name) })
  return view as Settings
}
