// Makes the weekly rota for emptying the dust bag and turning the compost.
// Usage: node rota.js 2025 > rota.txt

const people = ["Marta", "Ines", "Jo", "Ruth", "Samir", "Tobias", "Yusuf"];
const jobs = ["dust bag", "compost"];

/** The Monday on or before a date. */
function mondayOf(date) {
  const monday = new Date(date);
  monday.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
  return monday;
}

/** Who does which job in week number `week`; nobody has two jobs in one week. */
function assign(week) {
  return jobs.map((job, index) => ({
    job,
    who: people[(week + index * 3) % people.length],
  }));
}

function rota(year) {
  const lines = [];
  const day = mondayOf(new Date(Date.UTC(year, 0, 4))); // ISO week 1 holds the fourth of January
  for (let week = 1; week <= 52; week += 1) {
    const parts = assign(week).map(({ job, who }) => `${job}: ${who}`);
    lines.push(`${day.toISOString().slice(0, 10)}  ${parts.join(", ")}`);
    day.setUTCDate(day.getUTCDate() + 7);
  }
  return lines;
}

console.log(rota(Number(process.argv[2])).join("\n"));
