"""The twenty NAICS sectors with public margins: how many establishments, how large, who works there.

Employers: BLS, Quarterly Census of Employment and Wages, first quarter of 2016, all counties. A sector's public
side is left out below 200 establishments (21, 31-33, 42); means are over the cells that QCEW publishes.
Workers: Census Bureau, LODES workplace area characteristics of Utah 2019. The file has margins only, so a sector's
shares are those of the blocks where it holds at least 90 % of the jobs.
"""

from __future__ import annotations

from typing import NamedTuple


class Employers(NamedTuple):
    """A sector's establishments in the United States and jobs per establishment, by ownership."""

    sector: str
    private: tuple[int, float] | None
    public: tuple[int, float] | None


class WorkerShares(NamedTuple):
    """Shares of a sector's jobs.

    Attributes
    ----------
    education : less than high school, high school, some college, bachelor or more.
    age : 29 or younger, 30 to 54, 55 or older.
    race : White, Black, American Indian, Asian, Pacific Islander, two or more.
    """

    female: float
    education: tuple[float, ...]
    age: tuple[float, ...]
    race: tuple[float, ...]
    hispanic: float


EMPLOYERS = (
    Employers("11 Agriculture", (104_682, 12.16), (288, 28.59)),
    Employers("21 Mining", (34_803, 18.02), None),
    Employers("22 Utilities", (17_674, 30.30), (8_837, 36.34)),
    Employers("23 Construction", (765_938, 8.40), (6_388, 19.94)),
    Employers("31-33 Manufacturing", (343_730, 36.01), None),
    Employers("42 Wholesale trade", (616_390, 9.56), None),
    Employers("44-45 Retail trade", (1_048_514, 14.98), (1_760, 50.25)),
    Employers("48-49 Transportation and warehousing", (239_210, 20.56), (32_784, 25.03)),
    Employers("51 Information", (155_110, 18.22), (5_566, 27.58)),
    Employers("52 Finance and insurance", (479_587, 12.15), (1_070, 18.00)),
    Employers("53 Real estate", (374_302, 5.61), (1_701, 18.12)),
    Employers("54 Professional services", (1_156_024, 7.74), (2_763, 39.90)),
    Employers("55 Management of companies", (62_938, 36.60), None),
    Employers("56 Administrative and waste services", (521_305, 17.02), (4_037, 18.47)),
    Employers("61 Education", (113_431, 25.33), (73_845, 108.69)),
    Employers("62 Health care and social assistance", (1_468_496, 12.76), (15_158, 119.53)),
    Employers("71 Arts and recreation", (136_850, 15.34), (6_344, 47.13)),
    Employers("72 Accommodation and food services", (678_799, 19.48), (1_125, 50.35)),
    Employers("81 Other services", (828_684, 5.27), (2_508, 15.01)),
    Employers("92 Public administration", None, (136_261, 55.22)),
)

# In the order of EMPLOYERS.
# fmt: off
WORKERS = (
    WorkerShares(.319, (.249, .296, .302, .154), (.260, .505, .235), (.903, .024, .016, .034, .006, .018), .312),
    WorkerShares(.101, (.107, .367, .373, .153), (.142, .647, .211), (.933, .007, .034, .007, .008, .012), .076),
    WorkerShares(.171, (.063, .268, .383, .286), (.079, .547, .373), (.976, .002, .006, .007, .002, .007), .039),
    WorkerShares(.209, (.189, .312, .315, .184), (.269, .551, .180), (.911, .022, .023, .020, .006, .017), .209),
    WorkerShares(.297, (.163, .298, .321, .218), (.233, .546, .221), (.890, .022, .014, .043, .014, .017), .206),
    WorkerShares(.258, (.122, .299, .347, .232), (.213, .567, .220), (.937, .014, .008, .018, .007, .016), .117),
    WorkerShares(.443, (.120, .306, .357, .217), (.369, .444, .187), (.925, .014, .012, .023, .006, .021), .120),
    WorkerShares(.337, (.111, .283, .367, .238), (.170, .547, .283), (.876, .037, .014, .022, .032, .019), .110),
    WorkerShares(.314, (.075, .226, .307, .392), (.236, .617, .146), (.926, .013, .005, .031, .006, .019), .075),
    WorkerShares(.592, (.074, .222, .351, .354), (.294, .539, .167), (.942, .010, .004, .020, .006, .018), .091),
    WorkerShares(.462, (.125, .243, .321, .311), (.242, .546, .212), (.932, .013, .008, .026, .008, .013), .131),
    WorkerShares(.404, (.084, .222, .317, .377), (.279, .549, .171), (.916, .014, .008, .035, .007, .020), .089),
    WorkerShares(.420, (.093, .246, .334, .328), (.275, .514, .211), (.946, .007, .010, .017, .003, .017), .103),
    WorkerShares(.427, (.162, .273, .321, .244), (.321, .512, .167), (.880, .032, .019, .027, .020, .021), .212),
    WorkerShares(.636, (.067, .197, .313, .423), (.169, .578, .252), (.938, .009, .007, .028, .005, .013), .062),
    WorkerShares(.689, (.085, .215, .352, .349), (.260, .554, .186), (.921, .015, .011, .028, .008, .017), .091),
    WorkerShares(.438, (.107, .249, .324, .321), (.367, .414, .219), (.930, .018, .009, .022, .004, .016), .091),
    WorkerShares(.521, (.161, .277, .322, .240), (.458, .392, .149), (.866, .030, .026, .047, .007, .024), .157),
    WorkerShares(.442, (.122, .256, .349, .272), (.339, .476, .184), (.939, .014, .009, .015, .005, .018), .106),
    WorkerShares(.513, (.058, .334, .318, .290), (.176, .574, .250), (.909, .015, .029, .017, .007, .023), .082),
)
# fmt: on

SECTORS = tuple(row.sector for row in EMPLOYERS)
