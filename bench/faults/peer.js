// node peer.js PATH COMMAND…: take the lock of proper-lockfile, run the command, give it back, exit with its status.
'use strict';
const { spawn } = require('child_process');
const lockfile = require('proper-lockfile');
const [path, ...command] = process.argv.slice(2);
lockfile.lock(path, { realpath: false, onCompromised: e => console.log('COMPROMISED', e.message) }).then(release => {
  const child = spawn(command[0], command.slice(1), { stdio: 'inherit' });
  child.on('exit', code => release().catch(e => console.log('RELEASE', e.message)).then(() => process.exit(code ?? 70)));
}, e => {
  console.log('REFUSED', e.message);
  process.exit(75);
});
