// tsc emits only what it compiles; the Redis scripts and the console's page are read from beside their modules at run time.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'

cpSync('src', 'dist/src', { recursive: true, filter: (path) => !/\.[cm]?tsx?$|tsconfig\.json$/.test(path) })

// The console's libraries, as modules that a browser loads without a table of names.
const vendor = 'dist/src/admin/console/vendor'
const copyModule = (from, to) => {
  const text = readFileSync(`node_modules/${from}`, 'utf8')
  const relative = text.replace(/(from\s*)"preact"/g, '$1"./preact.js"').replace(/\n\/\/# sourceMappingURL=.*/, '')
  writeFileSync(`${vendor}/${to}`, relative)
}
mkdirSync(vendor, { recursive: true })
copyModule('preact/dist/preact.mjs', 'preact.js')
copyModule('preact/hooks/dist/hooks.mjs', 'preact-hooks.js')
copyModule('uplot/dist/uPlot.esm.js', 'uplot.js')
cpSync('node_modules/uplot/dist/uPlot.min.css', `${vendor}/uplot.css`)
cpSync('node_modules/preact/LICENSE', `${vendor}/preact-license.txt`)
cpSync('node_modules/uplot/LICENSE', `${vendor}/uplot-license.txt`)

// Tells make when the gateway was compiled.
writeFileSync('dist/built', '')
