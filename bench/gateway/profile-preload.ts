/**
 * Loaded into a gateway ahead of its own code (`node --import`): the first SIGUSR2 begins a CPU profile, the next one writes it into
 * the folder that BENCH_PROFILE_DIR names, and so on.
 */
import { writeFileSync } from 'node:fs'
import { Session } from 'node:inspector'
import { join } from 'node:path'

const microsecondsBetweenSamples = 200

const session = new Session()
session.connect()
session.post('Profiler.enable')
session.post('Profiler.setSamplingInterval', { interval: microsecondsBetweenSamples })

const state = { isRunning: false, written: 0 }
process.on('SIGUSR2', () => {
  state.isRunning = !state.isRunning
  if (state.isRunning) {
    session.post('Profiler.start')
    return
  }
  session.post('Profiler.stop', (error, result) => {
    if (error !== null) throw error
    state.written += 1
    const name = `${process.pid}-${state.written}.cpuprofile`
    writeFileSync(join(process.env['BENCH_PROFILE_DIR'] ?? '.', name), JSON.stringify(result.profile))
  })
})
