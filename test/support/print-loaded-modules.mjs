import { registerHooks } from 'node:module'

/* For `node --import`: prints the address of each module of OpenTelemetry, and of traces, that a process loads. */
registerHooks({
  load: (url, context, next) => {
    if (/@opentelemetry\/|\/src\/tracing\//.test(url)) process.stdout.write(`loaded ${url}\n`)
    return next(url, context)
  },
})
