/** The build puts the package beside this file as a module that browsers load (scripts/copy-assets.mjs). */
export * from 'preact'
