// The page of `troupe play` (experiments/play/play_server.hpp).

const byId = (id) => document.getElementById(id);
const stage = byId('stage');
const picture = byId('picture');
let paused = false;
let handSwitch = false;

// Commands of one screen frame are sent together; only the last command of a motion counts.
let waiting = [];
let sending = false;

async function flush() {
  if (sending || waiting.length === 0) return;
  sending = true;
  const commands = waiting;
  waiting = [];
  try {
    const headers = {'Content-Type': 'application/json', 'X-Troupe': 'play'};
    const reply = await fetch('/api/commands', {method: 'POST', headers, body: JSON.stringify({commands})});
    if (!reply.ok) showProblem((await reply.json()).error ?? reply.statusText);
  } catch {
    // The picture loop reports that the server is gone.
  }
  sending = false;
  flush();
}

function send(command) {
  const last = waiting.at(-1);
  const sums = ['turn', 'shift', 'zoom'];
  if (last && last.do === command.do && sums.includes(command.do)) {
    last.x = (last.x ?? 0) + (command.x ?? 0);
    last.y = (last.y ?? 0) + (command.y ?? 0);
  } else if (last && last.do === command.do && command.do === 'pull') {
    Object.assign(last, command);
  } else if (waiting.length < 200) {
    waiting.push(command);
  }
  flush();
}

function showProblem(text) {
  byId('problem').textContent = text;
  byId('problem').hidden = text === '';
}

// Position of the pointer in the picture, -1 to 1.
function place(event) {
  const box = picture.getBoundingClientRect();
  return {
    x: Math.max(-1, Math.min(1, 2 * (event.clientX - box.left) / box.width - 1)),
    y: Math.max(-1, Math.min(1, 1 - 2 * (event.clientY - box.top) / box.height)),
  };
}

let drag = null; // {kind, x, y}

stage.addEventListener('pointerdown', (event) => {
  event.preventDefault();
  stage.focus();
  stage.setPointerCapture(event.pointerId);
  const pulls = event.ctrlKey || handSwitch;
  const shifts = event.button === 2 || event.shiftKey;
  drag = {kind: pulls ? 'pull' : shifts ? 'shift' : 'turn', x: event.clientX, y: event.clientY};
  if (pulls) {
    stage.classList.add('pulling');
    send({do: 'grab', ...place(event)});
  }
});

stage.addEventListener('pointermove', (event) => {
  if (!drag) return;
  if (drag.kind === 'pull') {
    send({do: 'pull', ...place(event)});
    return;
  }
  const height = picture.getBoundingClientRect().height || 1;
  send({do: drag.kind, x: (event.clientX - drag.x) / height, y: (drag.y - event.clientY) / height});
  drag.x = event.clientX;
  drag.y = event.clientY;
});

function endDrag() {
  if (drag?.kind === 'pull') send({do: 'release'});
  stage.classList.remove('pulling');
  drag = null;
}
stage.addEventListener('pointerup', endDrag);
stage.addEventListener('pointercancel', endDrag);
stage.addEventListener('contextmenu', (event) => event.preventDefault());
stage.addEventListener('wheel', (event) => {
  event.preventDefault();
  send({do: 'zoom', y: Math.max(-1, Math.min(1, -event.deltaY / 600))});
}, {passive: false});

function togglePause() {
  send({do: paused ? 'resume' : 'pause'});
}
function toggleHand() {
  handSwitch = !handSwitch;
  byId('hand').setAttribute('aria-pressed', String(handSwitch));
  stage.classList.toggle('hand', handSwitch);
}
byId('pause').addEventListener('click', togglePause);
byId('step').addEventListener('click', () => send({do: 'step'}));
byId('restart').addEventListener('click', () => send({do: 'restart'}));
byId('camera').addEventListener('click', () => send({do: 'next_camera'}));
byId('hand').addEventListener('click', toggleHand);
byId('speed').addEventListener('change', (event) => send({do: 'speed', x: Number(event.target.value)}));

const keys = {
  ' ': togglePause,
  '.': () => send({do: 'step'}),
  'r': () => send({do: 'restart'}),
  'c': () => send({do: 'next_camera'}),
  'h': toggleHand,
};
const cameraKeys = {
  'ArrowLeft': {do: 'turn', x: -0.05},
  'ArrowRight': {do: 'turn', x: 0.05},
  'ArrowUp': {do: 'turn', y: 0.05},
  'ArrowDown': {do: 'turn', y: -0.05},
  '+': {do: 'zoom', y: 0.1},
  '=': {do: 'zoom', y: 0.1},
  '-': {do: 'zoom', y: -0.1},
};
document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const inTools = event.target.closest?.('button, select');
  if (keys[event.key.toLowerCase()] && !(inTools && event.key === ' ')) {
    event.preventDefault();
    keys[event.key.toLowerCase()]();
  } else if (cameraKeys[event.key] && document.activeElement === stage) {
    event.preventDefault();
    send({...cameraKeys[event.key]});
  }
});

const times = [];

function show(state) {
  paused = state.paused;
  byId('pause').textContent = paused ? 'Resume' : 'Pause';
  byId('camera-name').textContent = state.camera;
  byId('episode').textContent = state.episode + 1;
  byId('step-number').textContent = state.step;
  byId('seconds').textContent = state.seconds.toFixed(2);
  byId('reward').textContent = state.reward.toFixed(3);
  byId('return').textContent = state.return.toFixed(1);
  byId('held').textContent = `pulls ${state.held}`;
  byId('held').hidden = state.held === '';
  if (document.activeElement !== byId('speed')) byId('speed').value = String(state.speed);
  showProblem(state.problem);
  const now = performance.now();
  times.push(now);
  while (times[0] < now - 2000) times.shift();
  byId('rate').textContent = times.length < 2 ? '–' : ((times.length - 1) * 1000 / (now - times[0])).toFixed(0);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function draw(jpeg) {
  const bitmap = await createImageBitmap(jpeg);
  if (picture.width !== bitmap.width || picture.height !== bitmap.height) {
    picture.width = bitmap.width;
    picture.height = bitmap.height;
  }
  picture.getContext('2d').drawImage(bitmap, 0, 0);
  bitmap.close();
}

// The next picture is requested before this one is shown, which hides the round trip.
async function watch() {
  let number = 0;
  for (;;) {
    let answered = false;
    try {
      const reply = await fetch(`/api/picture?after=${number}`);
      answered = true;
      if (reply.status === 204) continue;
      if (!reply.ok) throw new Error((await reply.json()).error ?? reply.statusText);
      number = Number(reply.headers.get('X-Troupe-Number'));
      const state = JSON.parse(reply.headers.get('X-Troupe-State'));
      draw(await reply.blob());
      byId('connection').textContent = '';
      show(state);
    } catch (error) {
      byId('connection').textContent = `no pictures: ${error.message}`;
      if (!answered) number = 0; // for a restarted server
      await pause(1000);
    }
  }
}

async function about() {
  const reply = await fetch('/api/about');
  if (!reply.ok) return;
  const told = await reply.json();
  document.title = `${told.task}: play`;
  byId('task').textContent = told.task;
  byId('run').textContent = `${told.agent}, ${told.updates.toLocaleString('en')} updates, ${told.run}`;
}

about();
watch();
